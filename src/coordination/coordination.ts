/**
 * The interface of the coordination stores. Refresh tokens and authorization codes are single use: a second use of one
 * ends the login. So each is used by one piece of work at a time, under a lock, and the result of that work is kept for
 * every request that asks for the same afterwards.
 *
 * There are two stores: `memory.ts` within one process, and `redis.ts` between processes that share a Redis.
 */
export interface Coordination {
  /**
   * Runs `work` unless a run for `key` is under way, whose result is then awaited, or a kept result is there.
   * A run continues when its callers have stopped waiting, and its result is kept for later callers.
   * @throws CoordinationError when no result can be had in time; also everything that `work` throws
   */
  once<T>(key: string, work: Work<T>, options?: OnceOptions<T>): Promise<Once<T>>
  /** The kept result for `key`, or undefined. Does not wait for a run under way. Never rejects. */
  peek<T>(key: string): Promise<T | undefined>
  /**
   * Replaces the kept result for `key` by `change(kept)`, in one step that no other process can interrupt. The lifetime of
   * the result stays as it is. Nothing is changed if `change` returns undefined. `change` may be called several times.
   * Returns the result that is kept afterwards, or undefined if there is none.
   * @throws CoordinationError when the store cannot be used now, or its data cannot be read
   */
  update<T>(key: string, change: (kept: T) => T | undefined): Promise<T | undefined>
  /**
   * Says that the browser has what the result of `key` gave it. The result is then kept for `keepMs` milliseconds more,
   * for requests that the browser sent before. Returns at once and never fails.
   */
  confirm(key: string, keepMs: number): void
  /**
   * Remembers `key` for `ttlMs` milliseconds. The part before the first colon is the key's kind. Each kind has its own
   * limit in memory, so one kind never evicts another.
   * @param reach `everyone` also writes the mark into the memory of every connected replica at once
   */
  mark(key: string, ttlMs: number, reach?: 'store' | 'everyone'): Promise<void>
  isMarked(key: string): Promise<boolean>
  /** The same from this process's memory alone, without asking the store. */
  isMarkedHere(key: string): boolean
  /** Asks every replica to send no token request for `ms` milliseconds, because the identity provider wants a pause. */
  pauseCalls(ms: number): void
  /**
   * Milliseconds until token requests may be sent again; 0 when there is no pause. Urgent ones, which are code exchanges
   * and the second steps of half-finished refreshes, may go on a second earlier than all others.
   */
  pausedMs(options?: { readonly isUrgent: boolean }): number
  status(): CoordinationStatus
  /** Resolves when no work is running in this process. */
  idle(): Promise<void>
  /** Closes connections. Work that is still running is not waited for, and its result is not stored. */
  close(): Promise<void>
}

export type Work<T> = (run: Run<T>) => Promise<Settled<T>>

export interface OnceOptions<T> {
  /** Decides whether a kept result is good enough. If not, the work runs and its result replaces the kept one. */
  accept?(kept: T): boolean
  /** False: do not wait for a lock that another replica owns, or for a store that cannot be used now. */
  readonly canWait?: boolean
}

export interface CoordinationStatus {
  /** `away`: a Redis is configured and cannot be used now. */
  readonly store: 'memory' | 'redis' | 'away'
}

/** The view that a piece of work has of its own run. */
export interface Run<T = unknown> {
  /**
   * Milliseconds for which an earlier owner of the lock, which stopped extending it, may still deliver a result; 0 when
   * there is none. Until then a refusal by the identity provider may mean that this owner used the token successfully.
   */
  readonly stalledOwnerMs: number
  /** The kept result that `accept` turned down, if there was one. */
  readonly previous: T | undefined
  /** Milliseconds of the run's time limit that are left; at least 1. */
  remainingMs(): number
  /**
   * Saves an intermediate result. A replica that takes over the work gets it as a kept result and resumes from there.
   * Best effort.
   */
  checkpoint(reached: Settled<T>): Promise<void>
  /**
   * To be awaited before a further single-use token is used: makes sure that the lock will outlive the call.
   * @throws CoordinationError when it cannot be sure
   */
  ensureOwned(): Promise<void>
}

export interface Settled<T> {
  /** Plain JSON data, since another process may read it. */
  readonly value: T
  /** How long later callers get the same value, in milliseconds. */
  readonly keepMs: number
  /** The value holds tokens that exist nowhere else. A result without tokens never replaces one with tokens. */
  readonly hasTokens?: boolean
}

export interface Once<T> {
  readonly value: T
  /** `ran`: by this call; `joined`: by a run that was under way; `kept`: by an earlier one. */
  readonly how: 'ran' | 'joined' | 'kept'
  /** As in Run, when the value is the checkpoint of an owner that stopped extending its lock. */
  readonly stalledOwnerMs?: number
}

/**
 * - `pending`: the work is still running, here or in another replica; its result will be kept
 * - `store`: the store cannot be used now, and without it no token may be used
 * - `unreadable`: the stored data is of another type, or sealed with a secret that this process does not know
 * - `paused`: the identity provider asked for a pause
 * - `closing`: this process is stopping, so a result could not be delivered any more
 */
export type CoordinationProblem = 'pending' | 'store' | 'unreadable' | 'paused' | 'closing'

/** There is no result now. No token was used by this call, and the same request can be repeated later. */
export class CoordinationError extends Error {
  readonly problem: CoordinationProblem
  /** When a repetition is worth it, in seconds. */
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
