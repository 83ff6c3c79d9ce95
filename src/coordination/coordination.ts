/**
 * The interface of the coordination stores. Refresh tokens and authorization codes are single use, and a second use of one
 * ends the login. Therefore only one piece of work at a time may use a token, under a lock. Its result is kept for later
 * requests that need the same work.
 *
 * There are two stores. `memory.ts` works within one process, and `redis.ts` between processes that share a Redis.
 */
export interface Coordination {
  /**
   * Returns the kept result for `key` if there is one, or joins the current run for `key`. Otherwise runs `work`. A run
   * continues even if all of its callers stop waiting, and its result is kept for later callers.
   * @throws CoordinationError if there is no result in time; also everything that `work` throws
   */
  once<T>(key: string, work: Work<T>, options?: OnceOptions<T>): Promise<Once<T>>
  /** Returns the kept result for `key`, or undefined. Does not wait for a current run. Never rejects. */
  peek<T>(key: string): Promise<T | undefined>
  /**
   * Replaces the kept result for `key` by `change(kept)` atomically. Its lifetime does not change. If `change` returns
   * undefined, nothing is replaced. `change` may be called several times. Returns the result that is kept afterwards, or
   * undefined if there is none.
   * @throws CoordinationError if the store cannot be used now, or its data cannot be read
   */
  update<T>(key: string, change: (kept: T) => T | undefined): Promise<T | undefined>
  /**
   * Confirms that the browser has received the cookie made from the result of `key`. The result is then kept for `keepMs`
   * more milliseconds, for requests that the browser sent earlier. Returns at once and never fails.
   */
  confirm(key: string, keepMs: number): void
  /**
   * Remembers `key` for `ttlMs` milliseconds. The part before the first colon is the key's kind. Each kind has its own
   * limit in memory, so one kind never evicts another.
   * @param reach `everyone` also writes the mark into the memory of every connected replica at once
   */
  mark(key: string, ttlMs: number, reach?: 'store' | 'everyone'): Promise<void>
  isMarked(key: string): Promise<boolean>
  /** Looks for a mark only in the memory of this process. */
  isMarkedHere(key: string): boolean
  /** Asks every replica to send no token request for `ms` milliseconds, because the identity provider asked for a pause. */
  pauseCalls(ms: number): void
  /**
   * Returns the milliseconds until token requests may be sent again, or 0 if there is no pause. Urgent requests are code
   * exchanges and the second steps of refreshes. They may be sent a second earlier than others.
   */
  pausedMs(options?: { readonly isUrgent: boolean }): number
  status(): CoordinationStatus
  /** Resolves when no work is running in this process. */
  idle(): Promise<void>
  /** Closes connections. Does not wait for running work, and does not store its result. */
  close(): Promise<void>
}

export type Work<T> = (run: Run<T>) => Promise<Settled<T>>

export interface OnceOptions<T> {
  /** Decides whether a kept result is good enough. If not, the work runs and its result replaces the kept one. */
  accept?(kept: T): boolean
  /** False if the call must not wait for a lock that another replica owns, or for a store that cannot be used now. */
  readonly canWait?: boolean
}

export interface CoordinationStatus {
  /** `away` means that a Redis is configured but cannot be used now. */
  readonly store: 'memory' | 'redis' | 'away'
}

/** The run of a piece of work, as the work itself sees it. */
export interface Run<T = unknown> {
  /**
   * Milliseconds for which an earlier owner of the lock, which stopped extending it, may still deliver a result. 0 means
   * that there is no such owner. If the identity provider rejects the token during this time, that owner may have used it
   * successfully.
   */
  readonly stalledOwnerMs: number
  /** The kept result that `accept` rejected, if there was one. */
  readonly previous: T | undefined
  /** Returns the rest of the run's time limit in milliseconds, at least 1. */
  remainingMs(): number
  /**
   * Saves an intermediate result. A replica that takes over the work gets it as a kept result and resumes from there.
   * Best effort.
   */
  checkpoint(reached: Settled<T>): Promise<void>
  /**
   * Makes sure that the lease lasts longer than the next call to the provider. Await this before the run uses another
   * single-use token.
   * @throws CoordinationError if the lease cannot be extended
   */
  ensureOwned(): Promise<void>
}

export interface Settled<T> {
  /** Plain JSON data, because another process may read it. */
  readonly value: T
  /** The time for which later callers get the same value, in milliseconds. */
  readonly keepMs: number
  /** True if the value has tokens that exist nowhere else. A result without tokens never replaces such a result. */
  readonly hasTokens?: boolean
}

export interface Once<T> {
  readonly value: T
  /** The source of the value: this call (`ran`), a run that this call joined (`joined`), or an earlier run (`kept`). */
  readonly how: 'ran' | 'joined' | 'kept'
  /** As in Run. Set if the value is the checkpoint of an owner that stopped extending its lock. */
  readonly stalledOwnerMs?: number
}

/**
 * - `pending`: the work is still running in this or another replica, and its result will be kept.
 * - `store`: the store cannot be used now, and no token may be used without it.
 * - `unreadable`: the stored data has another type, or was encrypted with a secret that this process does not know.
 * - `paused`: the identity provider asked for a pause.
 * - `closing`: this process is stopping, so it could not deliver a result.
 */
export type CoordinationProblem = 'pending' | 'store' | 'unreadable' | 'paused' | 'closing'

/** There is no result now. No token was used by this call, and the same request can be repeated later. */
export class CoordinationError extends Error {
  readonly problem: CoordinationProblem
  /** The time in seconds after which the same request may succeed. */
  readonly retryAfterSeconds: number

  constructor(problem: CoordinationProblem, retryAfterSeconds = 1) {
    super(MESSAGES[problem])
    this.name = 'CoordinationError'
    this.problem = problem
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const MESSAGES: Readonly<Record<CoordinationProblem, string>> = {
  pending: 'the work for this key is still running',
  store: 'the shared store cannot be used now',
  unreadable: 'the stored data cannot be read',
  paused: 'the identity provider asked for a pause',
  closing: 'the server is stopping'
}
