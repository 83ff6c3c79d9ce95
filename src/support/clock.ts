/** The clocks and timers of a process. Tests and the simulation replace them. */
export interface Clock {
  /** The system clock, in milliseconds since the epoch. */
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
 * Starts to measure time. Returns a function that returns the elapsed milliseconds. It uses the larger value of both
 * clocks, because the monotonic clock may stand still while a virtual machine is suspended, and because the system clock
 * may be set back.
 */
export function startStopwatch(clock: Clock): () => number {
  const startedAt = clock.now()
  const startedMonotonic = clock.monotonic()
  return () => Math.max(clock.now() - startedAt, clock.monotonic() - startedMonotonic)
}
