import type { Clock as ServerClock } from '#src/base/clock.js'

/** All functions are bound, so each of them can be passed on alone. */
export interface Clock extends ServerClock {
  /** Moves both clocks and calls the timers that are due. If `ms` is negative, only the system clock is set back. */
  advance(ms: number): void
  advanceSeconds(seconds: number): void
  /** Moves the clock from timer to timer until `promise` has settled. Work between two timers must not need real time. */
  runUntilSettled<T>(promise: Promise<T>): Promise<T>
  /** The remaining milliseconds of all timers, the shortest one first. */
  timers(): readonly number[]
}

/**
 * A clock that stands still until a test moves it. It starts at the real time, because some libraries read the real
 * clock.
 */
export function createClock(startMs = Date.now()): Clock {
  let current = startMs
  let elapsed = 0
  const timers = new Set<{ readonly due: number; readonly action: () => void }>()
  const inOrder = () => [...timers].sort((a, b) => a.due - b.due)

  function advance(ms: number): void {
    current += ms
    elapsed += Math.max(0, ms)
    for (let next = inOrder()[0]; next && next.due <= elapsed; next = inOrder()[0]) {
      timers.delete(next)
      next.action()
    }
  }

  return {
    now: () => current,
    monotonic: () => elapsed,
    after(ms, action) {
      const timer = { due: elapsed + ms, action }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance,
    advanceSeconds: seconds => advance(seconds * 1000),
    async runUntilSettled(promise) {
      let isSettled = false
      const settled = () => {
        isSettled = true
      }
      promise.then(settled, settled)
      for (;;) {
        // All work that needs no timer and no input has ended before the callback of setImmediate runs.
        await new Promise(resolve => setImmediate(resolve))
        const [next] = inOrder()
        if (isSettled || !next) return promise
        advance(next.due - elapsed)
      }
    },
    timers: () => inOrder().map(({ due }) => due - elapsed)
  }
}
