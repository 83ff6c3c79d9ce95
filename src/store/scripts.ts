/**
 * The seven scripts of the session store. The store has one entry for each session. Every script reads or changes one
 * entry atomically. `redis-scripts.ts` runs them as Lua in Redis, and `memory-scripts.ts` runs them in this process. Both
 * implementations behave in the same way, and a test compares them.
 *
 * An entry has these parts:
 * - `rev`, the newest revision of the session. A login creates revision 1, and every stored token response adds 1.
 * - the record, which is the session at this revision. It expires soon after a browser has sent this revision.
 * - `seen`, which is true if a browser has sent a cookie of this revision
 * - the state: live, ended (the identity provider ended the login), or out (the person logged out)
 * - the lock: its owner, which is a request for the lock, and its end
 * - the pause after a failed request, and the time of the first doubtful rejection of the refresh token
 * - the loss: set if Redis may have lost a newer revision or a lock. While it is set, nobody gets the lock.
 *
 * The entry lives longer than any cookie of its session, so a missing entry means that the store has lost data. All times
 * are in milliseconds and on the clock of the store.
 */

/** The place of a revision in the history of its session. */
export type Position<Stored> =
  /** The store has exactly this revision. */
  | { readonly kind: 'same'; readonly isSeen: boolean; readonly hasRecord: boolean }
  /** The store has no entry, or only an older revision. */
  | { readonly kind: 'behind' }
  /** The store has a newer revision, and its record. */
  | { readonly kind: 'newer'; readonly rev: number; readonly record: Stored; readonly isSeen: boolean }
  /** A browser has sent a newer revision, so the caller has an old copy of a cookie. */
  | { readonly kind: 'stale' }
  /** There is a newer revision that no browser has, but its record is missing. */
  | { readonly kind: 'lost' }
  /** The identity provider has ended the login. */
  | { readonly kind: 'ended'; readonly reason: string }
  /** The person has logged out. */
  | { readonly kind: 'out' }

/** The answer to `take`, the request for the lock of a session. */
export type Taken<Stored> =
  | Exclude<Position<Stored>, { readonly kind: 'same' | 'behind' | 'lost' }>
  /** The caller has the lock. `suspectMs` is the time since the first doubtful rejection, if there was one. */
  | { readonly kind: 'mine'; readonly suspectMs: number | undefined }
  /** Another process has the lock. */
  | { readonly kind: 'held' }
  /** The last request has failed, and the next one may be sent after `pauseMs`. */
  | { readonly kind: 'pausing'; readonly pauseMs: number }
  /** The store has lost data of this session. Report `loss` to all processes, and then name it in the next `take`. */
  | { readonly kind: 'unsettled'; readonly loss: string }

/** The answer to `save`. */
export type Saved<Stored> =
  | Exclude<Position<Stored>, { readonly kind: 'same' | 'behind' }>
  /** The outcome is stored. `isOwner` is false if another process has taken the lock in the meantime. */
  | { readonly kind: 'saved'; readonly isOwner: boolean }

export interface TakeRequest {
  readonly rev: number
  /** A random id of this request for the lock. After the lock was used, the next request needs a new one. */
  readonly owner: string
  /** The loss that the caller has reported to all processes, if an earlier answer named one. */
  readonly reported: string | undefined
  /** A new random id for a loss that this call may find. */
  readonly newLoss: string
  /** The key of the session, if it is kept in Redis. */
  readonly key?: string | undefined
}

/**
 * The outcome of a token request.
 * - `tokens`: `rev` is the new revision. With `keepsLock`, the lock starts again for the next token request.
 * - `failure`: the session keeps its revision, and the next request may be sent after `pauseMs`
 * - `ended`: the identity provider has ended the login
 */
export type Outcome<Stored> =
  | { readonly kind: 'tokens'; readonly record: Stored; readonly keepsLock: boolean; readonly pauseMs: number }
  | { readonly kind: 'failure'; readonly pauseMs: number; readonly isDoubtful: boolean }
  | { readonly kind: 'ended'; readonly reason: string }

export interface SaveRequest<Stored> {
  readonly rev: number
  readonly owner: string
  readonly outcome: Outcome<Stored>
  readonly newLoss: string
  /** The key of the session, if it is kept in Redis. */
  readonly key?: string | undefined
}

/** @template Stored the stored form of a session: encrypted text in Redis, or the session itself in memory */
export interface SessionScripts<Stored> {
  /**
   * Returns the position of a revision. Never writes. Every session is newer than revision 0, so `look` with 0 returns its
   * record.
   * @param key the key of the session, if it is kept in Redis
   */
  look(id: string, rev: number, key?: string): Promise<Position<Stored>>
  /**
   * Requests the lock of a session. A repeated request of the same owner gets the lock again, because the first reply
   * may have been lost. Finds out if the store has lost data of this session.
   */
  take(id: string, request: TakeRequest): Promise<Taken<Stored>>
  /**
   * Stores the outcome of a token request and releases the lock. The higher revision wins, and the first record of a
   * revision wins. Tokens that arrive after the lock has ended are stored, too.
   */
  save(id: string, request: SaveRequest<Stored>): Promise<Saved<Stored>>
  /**
   * Records that a browser has sent exactly this revision. Its record expires after `keepSeconds`.
   * @param record the session of the cookie. It is stored if the store has no record of its revision, because requests with
   *   the cookie before it may still be under way. A revision without a record does not count as seen, so that a process
   *   that has the record can store it.
   */
  seen(id: string, rev: number, newLoss: string, record?: Stored): Promise<void>
  /** Undoes `seen`, because a browser has sent an older revision. Does nothing if the record has expired. */
  unseen(id: string): Promise<void>
  /**
   * Takes a lock again that the store has lost. `leftMs` is the rest of its time. Returns true if the store had the lock
   * and has lost no data since it was granted. Otherwise another owner may have had the lock meanwhile and used the token.
   * If another owner has it now, its lock lasts at least as long, because the request of the caller may be under way.
   */
  hold(id: string, rev: number, owner: string, leftMs: number, newLoss: string): Promise<boolean>
  /**
   * Logs the session out. Returns its newest record, if the store has it and it can be decrypted.
   * @param key the key of the session, if it is kept in Redis
   */
  out(id: string, key?: string): Promise<{ readonly rev: number; readonly record: Stored } | undefined>
}

/** The times of the scripts, in milliseconds. */
export interface ScriptTimes {
  /** The lifetime of an entry. Each write starts it again. */
  readonly entryMs: number
  /** The lifetime of the entry of a login that has not succeeded. It is longer than the `state` of a login is valid. */
  readonly loginMs: number
  /** The lifetime of a record after a browser has sent its revision. */
  readonly keepMs: number
  /** The lifetime of a lock. It is longer than a token request can take. */
  readonly lockMs: number
  /** The time in which all processes store again what they remember after a loss. 0 if there is only this process. */
  readonly settleMs: number
}

/** The longest pause after a failure, in milliseconds. A longer stored pause shows that the clock was set back. */
export const MAX_PAUSE_MS = 60_000

/** The lifetime of a lock in milliseconds: one token request of at most 60 seconds, and time to store its outcome. */
export const LOCK_MS = 65_000

/** The time limit of one token request in milliseconds, from the moment in which its lock starts. */
export const REQUEST_MS = 60_000

/** A token request is not sent if less of its time is left, because an aborted request loses its new token. */
export const LEAST_REQUEST_MS = 20_000

/**
 * The time in milliseconds in which all processes store again what they remember after a loss. Processes reconnect within
 * 550 ms of each other.
 */
export const SETTLE_MS = 2000
