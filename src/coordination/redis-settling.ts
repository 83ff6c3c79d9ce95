/**
 * Delays new locks after Redis comes up or has lost data. During this time every replica writes the locks and results
 * again that Redis may have lost. Otherwise Redis could grant a lock that another replica still owns.
 */
import type { UsableEvent } from './redis-connection.js'

export interface RedisSettling {
  /** Starts the delay. A delay that is already running is replaced. */
  start(event: UsableEvent): void
  /** True if locks may be granted. */
  isOver(): boolean
}

export interface SettlingTiming {
  /** The interval of inspections. Redis is inspected even if no other commands are sent. */
  readonly checkMs: number
  /** No lock is granted for this long after Redis comes up, so that the slowest replica can reconnect and publish. */
  readonly settleMs: number
}

/**
 * @param publishAgain writes the locks and results of this process again; the delay lasts at least until this is done
 * @param onOver called when locks may be granted again
 */
export function createRedisSettling(
  publishAgain: (event: UsableEvent) => Promise<void>,
  onOver: () => void,
  { checkMs, settleMs }: SettlingTiming
): RedisSettling {
  let running: Promise<void> | undefined
  return {
    start(event) {
      // Every replica inspects a new connection at once. If data disappears while the connection stays open, each replica
      // notices at its next inspection, which can take `checkMs`.
      const noticedMs = event.hasLostData && !event.isNewConnection ? checkMs : 0
      const delays = [delay(noticedMs + settleMs), publishAgain(event).catch(() => {})]
      const current = Promise.all(delays).then(() => {
        if (running !== current) return
        running = undefined
        onOver()
      })
      running = current
    },
    isOver: () => running === undefined
  }
}

function delay(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms).unref())
}
