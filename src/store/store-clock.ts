import type { Clock } from '../support/clock.js'

export type StoreClock = ReturnType<typeof createStoreClock>

/**
 * Follows the clock of the store, which all processes share. Each reply contains the time of the store. The difference to the
 * clock of this process lies between the differences at the sending of the command and at the arrival of its reply, so a
 * reply that a stopped process reads late does not falsify it.
 */
export function createStoreClock(clock: Pick<Clock, 'now'>) {
  let offsetMs = 0

  return {
    /** The time of the store, in milliseconds since the epoch. While the store is unavailable, the last difference applies. */
    now: (): number => clock.now() + offsetMs,
    /** Call it when a command is sent. Call the returned function with the time in the reply. */
    measure(): (time: number) => void {
      const sentAt = clock.now()
      return time => {
        const least = time - clock.now()
        const most = time - sentAt
        if (offsetMs < least - 1 || offsetMs > most + 1) offsetMs = (least + most) / 2
      }
    }
  }
}
