/**
 * What the session store does and answers. `process-store.ts` is the store as one process sees it, `process-memory.ts` is
 * what a process remembers, `restoration.ts` stores it again, and `person-sessions.ts` finds the sessions of a person.
 */
import type { CookieSession, SessionRecord, SessionReference } from '../session/record.js'
import type { Outcome } from './scripts.js'
import type { SessionsOf } from './session-index.js'

/** The position of the session in a request. */
export type Looked =
  /** The session of the cookie is the newest one that is known. */
  | { readonly kind: 'current' }
  | { readonly kind: 'newer'; readonly record: SessionRecord }
  /** The cookie is an old copy, and a browser has a newer one. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }

/** The session to which a cookie refers. */
export type Read =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }
  /** Redis has lost the session. */
  | { readonly kind: 'missing' }
  /** Redis has been away. The processes are storing again what they remember. */
  | { readonly kind: 'wait' }
  /** Redis cannot be used now. */
  | { readonly kind: 'away' }

/** The permission of this process to send token requests for a session. */
export interface Lock {
  readonly id: string
  /** The key of the session, if it is kept in Redis. */
  readonly key?: string | undefined
  /** The revision whose refresh token may be used. */
  readonly rev: number
  /** The owner of the lock in the store. */
  readonly owner: string
  /** Returns the milliseconds since the lock was requested. */
  readonly elapsedMs: () => number
  /** The generation of the connection in which the lock was granted. */
  readonly generation: number
  /** The time since the provider first rejected the refresh token in a doubtful way, in milliseconds. */
  readonly suspectMs: number | undefined
}

/** The answer to a request for a lock. */
export type LockAnswer =
  | Exclude<Looked, { readonly kind: 'current' }>
  | { readonly kind: 'mine'; readonly lock: Lock }
  /** Another process has the lock, or nobody gets it now. Ask again, and pass `loss` as `reportedLoss`. */
  | { readonly kind: 'wait'; readonly loss: string | undefined }
  | { readonly kind: 'pausing'; readonly pauseMs: number }
  /** Redis cannot be used now. */
  | { readonly kind: 'away' }

/** The answer to a stored outcome. */
export type SaveAnswer =
  /** The outcome is stored. `lock` is the lock for the next token request, if it was kept and is still ours. */
  | { readonly kind: 'saved'; readonly lock: Lock | undefined }
  /** Another process has stored a newer session. */
  | { readonly kind: 'newer'; readonly record: SessionRecord }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }
  /** The store has no answer, or another process is working on the session. Tokens are remembered and stored later. */
  | { readonly kind: 'unknown' }

/** `issuedAt` is the `iat` of the ID token of a login, in seconds since the epoch. */
export type StoredOutcome = Outcome<SessionRecord> & { readonly issuedAt?: number | undefined }

export interface SessionStore {
  /** Remembers that a browser has sent this revision. */
  browserSent(session: Version): void
  /**
   * Returns the position of the session in a request, and tells the store which revision the browser has. Uses one script.
   * @throws StoredDataError if the stored data cannot be read
   */
  look(session: SessionRecord): Promise<Looked>
  /**
   * Returns the newest session to which a cookie refers. Uses one script, and never writes. If Redis has lost the session,
   * asks all processes to store it again, and looks once more.
   * @throws StoredDataError if the stored data cannot be read
   */
  read(reference: SessionReference): Promise<Read>
  /** Returns the newest session with this id that this process knows, if it is newer than `session`. */
  newerHere(session: Version): SessionRecord | undefined
  /**
   * Requests the lock of a session.
   * @param reportedLoss the loss that an earlier answer named
   * @param owner the owner of the lock for a change. Without it, this process gets a lock again that it already has.
   * @throws StoredDataError if the stored data cannot be read
   */
  take(session: Version | SessionRecord, reportedLoss?: string, owner?: string): Promise<LockAnswer>
  /**
   * False if the lock may be lost: Redis was away since the lock was granted, or a browser has sent a newer revision. A lock
   * that is older than a second is confirmed in the store. Call it directly before a token is sent.
   */
  mayUse(lock: Lock): Promise<boolean>
  /** Stores the outcome of a token request. */
  save(lock: Lock, outcome: StoredOutcome): Promise<SaveAnswer>
  /**
   * Stores the next revision of a session that is kept in Redis, without a token request, and releases the lock.
   * @param lock a lock that was requested with its own owner
   */
  change(lock: Lock, record: SessionRecord): Promise<SaveAnswer>
  /**
   * Logs a session out in all processes. Returns the newest session of that id that is known. Returns undefined if only
   * Redis has the tokens, and cannot be read.
   */
  logOut(session: CookieSession): Promise<SessionRecord | undefined>
  /**
   * Logs out all sessions of a person, or of a login session at the provider. Needs an index.
   * @param issuedAt the `iat` of a logout token, in seconds since the epoch. A login whose ID token is not newer fails.
   * @returns the id of each session, and its newest record if the store or this process has it
   * @throws StoreUnavailableError if the sessions cannot be found now. No session has ended then.
   */
  logOutAll(of: SessionsOf, issuedAt?: number): Promise<readonly EndedSession[]>
  /**
   * Returns true at the first call with this token in any process, and false at every later call. Needs an index.
   * @throws StoreUnavailableError
   */
  claim(tokenId: string, lifetimeMs: number): Promise<boolean>
  /** Gives a claim a new lifetime. Never rejects. */
  keepClaim(tokenId: string, lifetimeMs: number): Promise<void>
  /** Undoes `claim`, because the token has had no effect. Never rejects. */
  release(tokenId: string): Promise<void>
  /** True if this process knows that the session was logged out. A logout is sent to all connected processes. */
  isLoggedOut(id: string): boolean
  /** Asks all processes to send no token request for `ms` milliseconds. */
  pause(ms: number): void
  /**
   * Returns the milliseconds until a token request may be sent.
   * @param isUrgent true for a code exchange and for the second request of dual mode. They come first after a pause.
   */
  pausedMs(isUrgent: boolean): number
  /** `away` means that a Redis is configured but cannot be used now. */
  status(): 'memory' | 'redis' | 'away'
  close(): Promise<void>
}

export interface EndedSession {
  readonly id: string
  readonly record: SessionRecord | undefined
}

/** The id and the revision of a session, and its key if it is kept in Redis. */
export type Version = Pick<SessionRecord, 'id' | 'rev' | 'key'>
