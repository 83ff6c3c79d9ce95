export interface Clock {
  /** Milliseconds since the epoch. Bound, so that it can be handed on as a plain function. */
  readonly now: () => number
  advance(ms: number): void
  advanceSeconds(seconds: number): void
}

/** A clock that stands still until a test moves it. It starts at the real time, for the things that cannot be told another one. */
export function createClock(startMs = Date.now()): Clock {
  let current = startMs
  const advance = (ms: number) => {
    current += ms
  }
  return { now: () => current, advance, advanceSeconds: seconds => advance(seconds * 1000) }
}
