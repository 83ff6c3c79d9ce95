import { KnownError } from './failure-reasons.js'

/** The clocks and timers of a process. Tests and the simulation replace them. */
export interface Clock {
  /** The system clock, in whole milliseconds since the epoch. */
  now(): number
  /** A clock that never goes back, in milliseconds. It may stand still while a virtual machine is suspended. */
  monotonic(): number
  /** Calls `action` after `ms` milliseconds. Returns a function that cancels the timer. */
  after(ms: number, action: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms)
    return () => clearTimeout(timer)
  }
}

/** Resolves after `ms` milliseconds. */
export function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise(resolve => clock.after(ms, resolve))
}

/**
 * Starts to measure time. Returns a function that returns the elapsed milliseconds. The result is the larger value of
 * the two clocks, because the monotonic clock may stand still while a virtual machine is suspended, and because the
 * system clock may be set back.
 */
export function startStopwatch(clock: Clock): () => number {
  const startedAt = clock.now()
  const startedMonotonic = clock.monotonic()
  return () => Math.max(clock.now() - startedAt, clock.monotonic() - startedMonotonic)
}

/** A time limit was exceeded. */
export class TimeLimitError extends KnownError {
  override readonly reason = 'timeout'
}

// The milliseconds that a timer waits after its time limit.
const LATE_RESPONSE_MS = 100

/**
 * Calls `action` when the time limit of `ms` milliseconds is exceeded. If the process was suspended, Node may not yet
 * have read a response that arrived in time, so `action` is called slightly later. Returns a function that cancels the
 * timer.
 */
export function afterLimit(ms: number, action: () => void, clock: Pick<Clock, 'after'> = systemClock): () => void {
  let cancel = clock.after(ms, () => {
    cancel = clock.after(LATE_RESPONSE_MS, action)
  })
  return () => cancel()
}

/**
 * Settles like `promise`, or rejects with TimeLimitError after `ms` milliseconds. A response that arrived in time is
 * used even if the process was suspended and the timer fires first.
 * @example const reply = await within(1000, client.get(key))
 */
export function within<T>(ms: number, promise: Promise<T>, clock: Pick<Clock, 'after'> = systemClock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = afterLimit(ms, () => reject(new TimeLimitError(`not done within ${ms} ms`)), clock)
    promise.then(resolve, reject)
    promise.then(cancel, cancel)
  })
}

/** Like `within`, but resolves with undefined at the time limit. */
export async function withinOrUndefined<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | undefined> {
  try {
    return await within(ms, promise, clock)
  } catch (error) {
    if (error instanceof TimeLimitError) return undefined
    throw error
  }
}
