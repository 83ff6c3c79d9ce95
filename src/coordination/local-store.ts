import { createExpiringMap, type ExpiringMap } from '../support/expiring-map.js'

/**
 * The data that this process has in memory, with and without Redis. It consists of the kept results of earlier runs,
 * the marks, and the end of the pause that the identity provider asked for.
 */
export interface LocalStore<Result> {
  readonly results: ExpiringMap<Result>
  readonly marks: ExpiringMap<Mark>
  /** Stores a new result, which no browser has confirmed yet. */
  keep(key: string, result: Result, ttlMs: number): void
  /**
   * Sets the lifetime of a result to `keepMs`, because a browser has sent the session cookie made from this result.
   * Only the first confirmation has this effect. Returns false for every later one.
   */
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
// Every request with the new cookie confirms the result again, so the store remembers confirmed results for an hour.
const MAX_CONFIRMATIONS = 20_000
const CONFIRMATION_MS = 3_600_000
// Results are grouped by lifetime. Most failures have a brief lifetime, and results that a browser has confirmed have a
// short one. Other results have a long lifetime. Each group has its own size limit, so one group never evicts results
// of another.
const BRIEF_MS = 10_000
const LONG_MS = 3_600_000
const LONGEST_PAUSE_MS = 60_000
// In dual mode a refresh needs two token requests. After a pause, refreshes that still need the second one continue
// before new refreshes start. Otherwise the first requests of new refreshes would use up the provider's quota.
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
      // A remaining time above the longest pause means that the clock was set back. The pause is then ignored.
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
