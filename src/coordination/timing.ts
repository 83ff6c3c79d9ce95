import type { RedisTiming } from './redis.js'

// The work of a run may take this long. The HTTP request that started the run gets its response earlier.
const WORK_MS = 60_000
const WAIT_MS = 5000
const MIN_STALLED_MS = 5000

/**
 * Computes all times of the coordination, in milliseconds. The lease of a lock is longer than two token requests and
 * the waiting time together, so an owner that stalls for some seconds keeps its lock.
 * @param timeoutSeconds the time that a request waits for the identity provider
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
    // An owner that stopped extending its lock can still deliver a result this long after the end of its lease.
    stalledMs: Math.max(MIN_STALLED_MS, workMs - leaseMs),
    waitMs: WAIT_MS,
    commandMs: 1000,
    startMs: 2000,
    checkMs: 5000,
    patienceMs: 5000,
    // This is three times the longest delay between two connection attempts, because the machine may be busy.
    settleMs: 1500
  }
}
