/**
 * Doing a thing once although many ask for it at the same time, and remembering for a while that it was done.
 * Refresh tokens and authorization codes are single use: whoever sends one twice loses the login.
 */
export interface Coordination {
  /**
   * Runs `work` unless somebody is already at it, whom it then waits for, or its result is still kept.
   * When `work` throws, those waiting in this process see the same error and nothing is kept.
   * @param accept looks at a kept result; when it says no, the work is done again and the result replaced.
   */
  once<T>(key: string, work: (run: Run<T>) => Promise<Settled<T>>, accept?: (kept: T) => boolean): Promise<Once<T>>
  /** The result for `key`, awaited when its work is under way; undefined when there is none or the work failed. */
  result<T>(key: string): Promise<T | undefined>
  /**
   * Remembers `key` for `ttlMs` milliseconds. What stands before its first colon is its kind, one of a few: however many
   * there are of one kind, those of another are not forgotten for them.
   */
  mark(key: string, ttlMs: number): Promise<void>
  isMarked(key: string): Promise<boolean>
  status(): CoordinationStatus
  /** Finishes what is under way, within a few seconds. */
  close(): Promise<void>
}

/** What was asked for had not begun when this process ended its part in the coordination. */
export class CoordinationClosedError extends Error {
  constructor() {
    super('the server is stopping')
    this.name = 'CoordinationClosedError'
  }
}

export interface Run<T = unknown> {
  /**
   * Whether another replica may be doing, or may just have done, the same without either knowing: their common store is
   * or was away. A provider that says a token is spent then says nothing about who spent it.
   */
  isAlone(): boolean
  /**
   * Leaves what has been reached so far, should this process die before the work is done: who takes it over is given
   * this as a kept result, and nothing that was done for it is done again. Where no other process can take over, nothing
   * happens.
   */
  leave(reached: Settled<T>): Promise<void>
}

export interface Settled<T> {
  /** Plain JSON data, since it may have to travel to another process. */
  readonly value: T
  /** How long later askers are given the same value, in milliseconds; 0 for only those who are waiting now. */
  readonly keepMs: number
  /** It cannot be had again. Should the work have been done twice after all, such a result outweighs any other. */
  readonly isPrecious?: boolean
}

export interface Once<T> {
  readonly value: T
  /** `ran`: by this call; `joined`: by another that was under way; `kept`: before. */
  readonly how: 'ran' | 'joined' | 'kept'
}

export interface CoordinationStatus {
  readonly store: 'memory' | 'redis' | 'memory (redis away)'
}
