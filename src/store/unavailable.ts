/**
 * - `pending`: another process has the lock, and its outcome is not stored yet
 * - `store`: Redis cannot be used now
 */
export type StoreProblem = 'pending' | 'store'

/** The store cannot answer now. The same request can be repeated later. */
export class StoreUnavailableError extends Error {
  readonly problem: StoreProblem
  /** The time in seconds after which the same request may succeed. */
  readonly retryAfterSeconds = 1

  constructor(problem: StoreProblem) {
    super(problem === 'pending' ? 'the outcome of another request is not stored yet' : 'Redis cannot be used now')
    this.name = 'StoreUnavailableError'
    this.problem = problem
  }
}
