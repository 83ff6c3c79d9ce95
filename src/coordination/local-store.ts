import { createExpiringMap, type ExpiringMap } from './expiring-map.js'

/** The bounded memory that both stores use: kept results, marks, and a pause that the identity provider asked for. */
export interface LocalStore<Result> {
  readonly results: ExpiringMap<Result>
  readonly marks: ExpiringMap<Mark>
  /** Stores a result that no browser has confirmed yet. */
  keep(key: string, result: Result, ttlMs: number): void
  /** Shortens the life of a result to `keepMs`. Returns false if that has been done before. */
  confirm(key: string, keepMs: number): boolean
  pause(ms: number): void
  /** As in Coordination. */
  pausedMs(options?: { readonly isUrgent: boolean }): number
}

export interface Mark {
  /** When a shared store was told, on the clock of `performance.now()`; Infinity while it has not been told. */
  storedAt: number
}

// A result is a session of some kilobytes; a mark is a short string.
const RESULTS_PER_GROUP = 10_000
const MARKS_PER_KIND = 200_000
// A browser sends its new cookie with every request; only the first of them says something new.
const CONFIRMATIONS = 20_000
const CONFIRMATION_MS = 3_600_000
// Results of similar lifetimes form a group: failures, results that the browser has confirmed, results that it has not.
const BRIEF_MS = 10_000
const LONG_MS = 3_600_000
const LONGEST_PAUSE_MS = 60_000
// After a pause, half-finished refreshes are completed before others begin. The provider's quota would otherwise be spent
// on first steps.
const SECOND_STEPS_FIRST_MS = 1000

/** @param now milliseconds since the epoch */
export function createLocalStore<Result>(now: () => number): LocalStore<Result> {
  const results = createExpiringMap<Result>(RESULTS_PER_GROUP, now, (_key, ttlMs) => lifetimeClass(ttlMs))
  const confirmed = createExpiringMap<true>(CONFIRMATIONS, now)
  let pausedUntil = Number.NEGATIVE_INFINITY
  return {
    results,
    keep(key, result, ttlMs) {
      confirmed.delete(key)
      results.set(key, result, ttlMs)
    },
    confirm(key, keepMs) {
      if (confirmed.get(key)) return false
      confirmed.set(key, true, CONFIRMATION_MS)
      const result = results.get(key)
      if (result !== undefined) results.set(key, result, keepMs)
      return true
    },
    marks: createExpiringMap<Mark>(MARKS_PER_KIND, now, kindOf),
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, now() + Math.min(ms, LONGEST_PAUSE_MS))
    },
    pausedMs({ isUrgent } = { isUrgent: false }) {
      const leftMs = pausedUntil - now() + (isUrgent ? 0 : SECOND_STEPS_FIRST_MS)
      // More than the longest pause is left only if the clock was set back since.
      return leftMs > LONGEST_PAUSE_MS + SECOND_STEPS_FIRST_MS ? 0 : Math.max(0, leftMs)
    }
  }
}

function lifetimeClass(ttlMs: number): string {
  if (ttlMs <= BRIEF_MS) return 'brief'
  return ttlMs <= LONG_MS ? 'short' : 'long'
}

function kindOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf(':')))
}
