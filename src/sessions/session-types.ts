/**
 * What the rest of the server sees of this folder: sessions, and never leases or cells. ARCHITECTURE.md has a glossary of the
 * words *record*, *revision* and *lease*.
 */
import type { SessionRecord } from '../cookie/record.js'
import type { End, Outcome, RefusalSeries, Suspicion } from './transitions.js'

/** The id of a session and, if the session is kept in Redis, the key that decrypts its record. */
export interface SessionKey {
  readonly id: string
  readonly key?: string | undefined
}

/** A session at a revision of which the caller knows. A login is at revision 0. */
export interface Revision extends SessionKey {
  readonly rev: number
}

/**
 * The reason why a session cannot be refreshed now:
 * - `pending`: another request or replica is still refreshing the session, or Redis has lost data and no process may refresh the
 *   session until the recovery time is over
 * - `store`: Redis is unavailable
 * - `unreadable`: the stored data has the wrong type, or this process does not have the secret that encrypted it
 * - `paused`: the identity provider asked for a pause
 * - `provider`: the identity provider did not refresh the session
 * - `refused`: the identity provider has refused the refresh token for 30 seconds. This proves nothing yet, but the session may be over
 */
export type Problem = 'pending' | 'store' | 'unreadable' | 'paused' | 'provider' | 'refused'

/**
 * Where a session stands.
 * - `live`: `record` is the session at its newest revision
 * - `over`: the session has ended
 * - `unavailable`: the newest revision cannot be read or refreshed now. `record` is the newest one that this process knows. It is
 *   undefined if this process knows none.
 *
 * `isUnsaved` means that only this process has `record`. The cookie of a session that is kept in Redis must not name a revision
 * until Redis has it.
 */
export type Current =
  | { readonly kind: 'live'; readonly record: SessionRecord; readonly isUnsaved?: true }
  | { readonly kind: 'over'; readonly end: End }
  | {
      readonly kind: 'unavailable'
      readonly why: Problem
      readonly retryAfterSeconds: number
      readonly record: SessionRecord | undefined
      readonly isUnsaved?: true
    }

/** How a token request under a lease is sent. */
export interface LeaseRequest {
  /** Waits for a slot in the queue to the provider, and runs `send` in it. Rejects without running it if the queue is full. */
  readonly inSlot: <Result>(send: () => Promise<Result>) => Promise<Result>
  /**
   * True for the second request of dual mode, which may be sent earlier after a pause than the first request of a refresh.
   */
  readonly isUrgent: boolean
  /** False if the caller has valid tokens, so it should not wait if another process has the lease. */
  readonly mayWait: boolean
}

/** The lease under which a token request is sent. */
export interface Grant {
  /** The refusals of this refresh token before the request. */
  readonly suspect: Suspicion | undefined
  /** Returns a series of refusals with one that has just arrived. */
  refusedAgain(series: string): RefusalSeries
  /** Returns the milliseconds that a token request may still take. */
  leftMs(): number
}

/**
 * What is stored after a token request. `isFinal` ends the session like a logout: all processes remember the end, and a later
 * revision does not revive the session.
 */
export type Result =
  | Exclude<Outcome<SessionRecord>, { readonly kind: 'unchecked' }>
  /**
   * More work is needed that must not occupy the slot of the token request. The lease stays, so no other process sends a token
   * request meanwhile. `record` is stored before: a session with the new refresh token, which must not get lost.
   */
  | { readonly kind: 'unfinished'; readonly record?: SessionRecord; readonly finish: () => Promise<Result> }

/**
 * Sends one token request. It is called in the same turn of the event loop in which the lease was acquired.
 * @param session the session for whose revision the lease was granted
 */
export type Work<Session> = (session: Session, grant: Grant) => Promise<Result>

/** The sessions of all users, shared with the other replicas. Every function takes the session or its id. */
export interface Sessions {
  /** Returns the time on the clock of the store, in milliseconds since the epoch. All replicas agree on it. */
  now(): number
  /**
   * Reads a session, usually with one command. Never writes. The result is `unavailable` only if Redis has
   * lost the session, or if a login has not been completed.
   * @throws StoreUnavailableError
   */
  current(session: Revision): Promise<Current>
  /**
   * Returns what this process knows of a session, without reading the store. Most processes know that a session is over for good,
   * because every such end is sent to all connected processes.
   */
  known(id: string): Current
  /**
   * Calls `listener` once when this process learns that a session is over: after a logout, an end by the provider or by the access
   * list, or at the end of `session.maxLifetime`. A new revision, an end of an older revision, and data loss do not end a session.
   * If the session is already over, calls `listener` after the caller has returned to the event loop. The cost of a call does not
   * depend on the number of sessions and listeners.
   * @returns a function that removes the listener
   */
  whenOver(session: Pick<SessionRecord, 'id' | 'loggedInAt'>, listener: () => void): () => void
  /**
   * Acquires the lease of a session, calls `work` under it, and stores its result. Calls `work` at most once, and only if nobody is
   * known to have a newer revision than `session`. Otherwise, the result says where the session stands, and the caller can repeat
   * the call with `record`. While another process has the lease, waits up to 5 seconds, outside of the queue.
   * @param session its revision is 0 for a login
   * @returns `unavailable` also if the tokens of `record` are still valid. If the result of a token request could not be stored,
   *   `record` is nevertheless the new one, which this process stores later.
   * @throws StoreUnavailableError if no lease can be acquired now; any error of `inSlot` and of `work`
   */
  underLease<Session extends Revision>(session: Session, request: LeaseRequest, work: Work<Session>): Promise<Current>
  /**
   * Waits at most 5 seconds until another process has restored a session that Redis has lost. The first call starts the recovery
   * time, after which the session is over.
   * @throws StoreUnavailableError
   */
  recover(session: Revision): Promise<Current>
  /**
   * Returns the newest record with the fields that a request handler has changed. If the session is kept in Redis, stores it as a
   * new revision. Returns undefined if the session is over.
   * @param stored the session after the changes of the handler; its tokens are ignored
   * @throws StoreUnavailableError if the change cannot be stored now; SessionTooLargeError
   */
  change(record: SessionRecord, stored: object): Promise<SessionRecord | undefined>
  /**
   * Ends a session for good in all processes. `record` is its newest known record, so that its refresh token can be revoked.
   * `isStored` is false if the end could not be stored now. In this case, this process stores it later. Does not reject if the
   * store is unavailable.
   * @param end a logout by default
   */
  end(
    session: SessionKey | Revision,
    end?: End
  ): Promise<{ readonly record: SessionRecord | undefined; readonly isStored: boolean }>
  /** Asks all processes to send no token request of a login or a refresh for `ms` milliseconds. */
  pause(of: 'login' | 'refresh', ms: number): void
  /** Returns the milliseconds until a token request of a login, or the first token request of a refresh, may be sent. */
  pausedMs(of: 'login' | 'refresh'): number
}
