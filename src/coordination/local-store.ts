import { createExpiringMap, type ExpiringMap } from '../support/expiring-map.js'

/** The part of both stores that is in memory. It contains kept results, marks and the pause of the identity provider. */
export interface LocalStore<Result> {
  readonly results: ExpiringMap<Result>
  readonly marks: ExpiringMap<Mark>
  /** Stores a new result. It counts as unconfirmed until a browser sends back the session cookie made from it. */
  keep(key: string, result: Result, ttlMs: number): void
  /** Shortens the lifetime of a result to `keepMs`. Returns false if the result was confirmed before. */
  confirm(key: string, keepMs: number): boolean
  pause(ms: number): void
  /** See `pausedMs` of Coordination. */
  pausedMs(options?: { readonly isUrgent: boolean }): number
}

export interface Mark {
  /** The time at which Redis stored the mark, from `performance.now()`. Infinity until Redis has stored it. */
  storedAt: number
}

// The limits differ because a result is a session of some kilobytes and a mark is a short string.
const RESULTS_PER_GROUP = 10_000
const MARKS_PER_KIND = 200_000
// A browser confirms a result with every request that carries the new cookie. Only the first confirmation has an
// effect.
const MAX_CONFIRMATIONS = 20_000
const CONFIRMATION_MS = 3_600_000
// Results are grouped by lifetime. Failures are brief, confirmed results short, and unconfirmed results long. Each group
// has its own limit, so one group never evicts another.
const BRIEF_MS = 10_000
const LONG_MS = 3_600_000
const LONGEST_PAUSE_MS = 60_000
// After a pause, refreshes that have completed their first of two calls continue before new refreshes begin. Otherwise
// the first calls of new refreshes would use up the provider's quota.
const SECOND_CALLS_FIRST_MS = 1000

/** @param now milliseconds since the epoch */
export function createLocalStore<Result>(now: () => number): LocalStore<Result> {
  const results = createExpiringMap<Result>(RESULTS_PER_GROUP, now, (_key, ttlMs) => lifetimeClass(ttlMs))
  const confirmed = createExpiringMap<true>(MAX_CONFIRMATIONS, now)
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
      const leftMs = pausedUntil - now() + (isUrgent ? 0 : SECOND_CALLS_FIRST_MS)
      // A time beyond the longest pause means that the clock was set back. The pause then counts as over.
      return leftMs > LONGEST_PAUSE_MS + SECOND_CALLS_FIRST_MS ? 0 : Math.max(0, leftMs)
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
