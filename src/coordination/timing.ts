import type { RedisTiming } from './redis.js'

// A token request may take this long in total, although the HTTP request that started it is answered earlier.
const WORK_MS = 60_000
const WAIT_MS = 5000
const SHORTEST_STALLED_MS = 5000

/**
 * All times of the coordination, in milliseconds. The lease of a lock is longer than two token requests and all waiting, so
 * an owner that stalls for some seconds keeps it.
 * @param timeoutSeconds how long a request waits for the identity provider
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
    // The last moment at which the work of an owner can end, counted from the end of its lease.
    stalledMs: Math.max(SHORTEST_STALLED_MS, workMs - leaseMs),
    waitMs: WAIT_MS,
    commandMs: 1000,
    startMs: 2000,
    checkMs: 5000,
    patienceMs: 5000,
    // Three times the longest pause between two attempts to connect, because the machine may be busy.
    settleMs: 1500
  }
}
