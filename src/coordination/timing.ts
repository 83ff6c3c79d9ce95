import type { RedisTiming } from './redis.js'

// A refresh or code exchange may take this long. A request that waits for the result stops waiting earlier.
const WORK_MS = 60_000
const WAIT_MS = 5000
const MIN_STALLED_MS = 5000

/**
 * Computes the times of the coordination through Redis, in milliseconds. A replica owns a lock for `leaseMs`, and
 * longer if it extends the lock. `leaseMs` is 5 seconds longer than two token requests can take, so a replica that
 * stalls for some seconds still owns its lock.
 * @param timeoutSeconds the time limit of a token request
 */
export function timingOf(timeoutSeconds: number): RedisTiming {
  const answerMs = timeoutSeconds * 1000
  const workMs = Math.max(WORK_MS, 2 * answerMs)
  const leaseMs = 2 * answerMs + WAIT_MS
  return {
    answerMs,
    callMs: answerMs,
    workMs,
    leaseMs,
    // After `leaseMs` has ended, a replica can still store its result for this time.
    stalledMs: Math.max(MIN_STALLED_MS, workMs - leaseMs),
    waitMs: WAIT_MS,
    commandMs: 1000,
    startMs: 2000,
    checkMs: 5000,
    patienceMs: 5000,
    // Replicas need up to 550 ms to try to connect again. The value is almost three times as long, for a busy machine.
    settleMs: 1500
  }
}
