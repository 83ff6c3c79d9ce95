/**
 * Delays new locks after Redis has come up or has lost data. During the delay, every replica writes its locks and
 * results again, because Redis may have lost them. Without the delay, Redis could grant a lock that another replica
 * still owns.
 */
import type { UsableEvent } from './redis-connection.js'

export interface RedisSettling {
  /** Starts the delay. Replaces a delay that is already running. */
  start(event: UsableEvent): void
  /** Returns true if locks may be granted. */
  isOver(): boolean
}

export interface SettlingTiming {
  /** The interval in milliseconds at which each replica checks if Redis has lost data. */
  readonly checkMs: number
  /**
   * The length of the delay in milliseconds. The slowest replica must be able to reconnect and to write its data in
   * this time.
   */
  readonly settleMs: number
}

/**
 * @param publishAgain writes the locks and results of this process again; the delay does not end before this has
 *   finished
 * @param onOver called at the end of the delay
 */
export function createRedisSettling(
  publishAgain: (event: UsableEvent) => Promise<void>,
  onOver: () => void,
  { checkMs, settleMs }: SettlingTiming
): RedisSettling {
  let running: Promise<void> | undefined
  return {
    start(event) {
      // Every replica checks a new connection for lost data at once. If data disappears while the connections stay
      // open, the other replicas notice the loss up to `checkMs` later.
      const detectionMs = event.hasLostData && !event.isNewConnection ? checkMs : 0
      const delays = [delay(detectionMs + settleMs), publishAgain(event).catch(() => {})]
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
