export interface Clock {
  /** Milliseconds since the epoch. The function is bound, so it can be passed on alone. */
  readonly now: () => number
  advance(ms: number): void
  advanceSeconds(seconds: number): void
}

/**
 * A clock that stands still until a test moves it. It starts at the real time, because some libraries read the real
 * clock.
 */
export function createClock(startMs = Date.now()): Clock {
  let current = startMs
  const advance = (ms: number) => {
    current += ms
  }
  return { now: () => current, advance, advanceSeconds: seconds => advance(seconds * 1000) }
}
