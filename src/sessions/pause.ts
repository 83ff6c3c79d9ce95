import type { Clock } from '../base/clock.js'
import { TIMES } from './transitions.js'

// After a pause of refreshes, the second token requests of dual mode may be sent this many milliseconds earlier than the first ones. Otherwise the first requests of other sessions would use up the quota, and no session would
// get both tokens.
const URGENT_FIRST_MS = 1000

/**
 * Creates the pauses for which the identity provider asks. All replicas share its quota. Logins and refreshes have separate pauses,
 * because anybody can send callbacks with made-up codes, which must not delay refreshes.
 */
export function createPauses(clock: Pick<Clock, 'now'>) {
  return { login: createPause(clock), refresh: createPause(clock) }
}

export type Pauses = ReturnType<typeof createPauses>

function createPause(clock: Pick<Clock, 'now'>) {
  let until = Number.NEGATIVE_INFINITY

  return {
    begin(ms: number): void {
      const now = clock.now()
      // A pause that would end later began before the clock was set back.
      if (until > now + TIMES.maxPauseMs) until = now
      until = Math.max(until, now + Math.min(ms, TIMES.maxPauseMs))
    },
    /** Returns the milliseconds until a token request may be sent. `isUrgent` has the meaning of `LeaseRequest`. */
    leftMs(isUrgent: boolean): number {
      const leftMs = until - clock.now() + (isUrgent ? 0 : URGENT_FIRST_MS)
      // If the time left is longer than the longest pause, the clock was set back. The end of the pause is then wrong, so ignore
      // the pause.
      return leftMs > TIMES.maxPauseMs + URGENT_FIRST_MS ? 0 : Math.max(0, leftMs)
    }
  }
}
