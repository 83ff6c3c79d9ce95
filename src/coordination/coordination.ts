/**
 * The interface of the coordination stores. Many identity providers accept a refresh token or an authorization code
 * only once and end the login if it is sent again. Concurrent requests must therefore share one use of a token.
 * `memory.ts` coordinates the requests of one process, and `redis.ts` those of several replicas that share a Redis.
 * Terms:
 *
 * - A run is one execution of the work for a key, for example the refresh of one session.
 * - A kept result is the stored result of a run. Later callers with the same key get this result instead of a new run.
 * - A lock allows one replica, its owner, to run the work for a key. The owner extends the lock until the run ends. If
 *   the owner stops extending it, another replica can take over.
 * - A mark is a stored key without a value. For example, it records that a session has logged out.
 */
export interface Coordination {
  /**
   * Returns the kept result for `key` if there is one and `accept` allows it. Otherwise, if there is a current run for
   * `key`, waits for its result. Otherwise runs `work` and keeps its result. A run continues even if all of its callers
   * stop waiting.
   * @throws CoordinationError if the result is not available in time; also every error that `work` throws
   */
  once<T>(key: string, work: Work<T>, options?: OnceOptions<T>): Promise<Once<T>>
  /** Returns the kept result for `key`, or undefined. Does not wait for a run that is not finished. Never rejects. */
  peek<T>(key: string): Promise<T | undefined>
  /**
   * Atomically replaces the kept result for `key` by the return value of `change`, without changing the lifetime of the
   * result. If `change` returns undefined, the old result stays. `change` is called again if another process changes
   * the result at the same time. Returns the result that is kept afterwards, or undefined if no result is kept.
   * @throws CoordinationError if the store cannot be used now, or if its data cannot be read
   */
  update<T>(key: string, change: (kept: T) => T | undefined): Promise<T | undefined>
  /**
   * Call this when a browser has sent the session cookie that was made from the result of `key`. The result then
   * expires after `keepMs` milliseconds. Until then it answers requests that the browser sent before it received the
   * cookie. Returns at once and never fails.
   */
  confirm(key: string, keepMs: number): void
  /**
   * Stores a mark for `ttlMs` milliseconds. The part of `key` before the first colon is the kind of the mark. Each kind
   * has its own size limit in memory, so marks of one kind never evict marks of another kind.
   * @param reach `everyone` also sends the mark to all connected replicas, which store it in their memory
   */
  mark(key: string, ttlMs: number, reach?: 'store' | 'everyone'): Promise<void>
  isMarked(key: string): Promise<boolean>
  /** Returns true if the memory of this process contains the mark. Does not ask Redis. */
  isMarkedHere(key: string): boolean
  /**
   * Asks every replica to send no token request for `ms` milliseconds, because the identity provider asked for a pause.
   */
  pauseCalls(ms: number): void
  /**
   * Returns the milliseconds until token requests may be sent again, or 0 if they may be sent now.
   * @param options.isUrgent true for a code exchange, and for the second of the two token requests of a refresh in dual
   *   mode; urgent requests may be sent when the pause ends, other requests one second later
   */
  pausedMs(options?: { readonly isUrgent: boolean }): number
  status(): CoordinationStatus
  /** Resolves when no run is active in this process. */
  idle(): Promise<void>
  /** Closes the connections. Does not wait for active runs, and their results are not stored in Redis. */
  close(): Promise<void>
}

export type Work<T> = (run: Run<T>) => Promise<Settled<T>>

export interface OnceOptions<T> {
  /** Returns false to reject a kept result. The work then runs, and its result replaces the rejected result. */
  accept?(kept: T): boolean
  /**
   * If false, the call waits neither for a lock that another replica owns nor for Redis to come up. The default is
   * true.
   */
  readonly canWait?: boolean
}

export interface CoordinationStatus {
  /** `away` means that a Redis is configured but cannot be used now. */
  readonly store: 'memory' | 'redis' | 'away'
}

/** The argument of the work. It gives the work access to its run. */
export interface Run<T = unknown> {
  /**
   * Greater than 0 if this run took over the lock of a replica that stopped extending it. For this many milliseconds
   * the earlier owner may still store a result. If the identity provider rejects the token in this time, the earlier
   * owner may have used the token successfully.
   */
  readonly stalledOwnerMs: number
  /** The kept result that `accept` rejected, if there was one. */
  readonly previous: T | undefined
  /** Returns the milliseconds until the time limit of the run, at least 1. */
  remainingMs(): number
  /**
   * Stores an intermediate result, called a checkpoint. If another replica takes over the lock, it gets the checkpoint
   * as a kept result and can continue from there. Best effort.
   */
  checkpoint(reached: Settled<T>): Promise<void>
  /**
   * Makes sure that this process owns the lock for longer than one call to the identity provider can take. The work
   * must await `ensureOwned` before it uses another single-use token.
   * @throws CoordinationError if the lock cannot be extended
   */
  ensureOwned(): Promise<void>
}

export interface Settled<T> {
  /** Plain JSON data, because another process may read it. */
  readonly value: T
  /** The time in milliseconds for which the result is kept. */
  readonly keepMs: number
  /**
   * True if the value contains tokens that are stored nowhere else. A result without tokens never replaces one with
   * tokens.
   */
  readonly hasTokens?: boolean
}

export interface Once<T> {
  readonly value: T
  /**
   * The source of the value: this call (`ran`), a run that this call waited for (`joined`), or an earlier run (`kept`).
   */
  readonly how: 'ran' | 'joined' | 'kept'
  /**
   * Only set if the value is the checkpoint of a replica that stopped extending its lock. For this many milliseconds
   * that replica may still store a final result.
   */
  readonly stalledOwnerMs?: number
}

/**
 * - `pending`: the work is still running in this or another replica, and its result will be kept.
 * - `store`: the store cannot be used now, and the server must not use a token without coordination.
 * - `unreadable`: the stored data has the wrong type, or this process does not have the secret that encrypted it.
 * - `paused`: the identity provider asked for a pause.
 * - `closing`: this process is stopping, so it could not send the result to the browser.
 */
export type CoordinationProblem = 'pending' | 'store' | 'unreadable' | 'paused' | 'closing'

/** The result is not available now. The same request can be repeated later. */
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
