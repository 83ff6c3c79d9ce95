// Each insertion removes up to this many expired entries. The map therefore needs no timer, and the time for an
// insertion does not depend on the number of entries.
const REMOVED_PER_INSERTION = 4

/**
 * Creates a map with a maximum size, in which each entry has a lifetime. The lifetimes should be similar, because the
 * map looks for expired entries only among the oldest entries. Unlike the package lru-cache, the map allocates no
 * memory in advance for the many entries that its limit allows.
 * @param limit the maximum weight of all entries; a new entry evicts the oldest entries until there is room for it; an
 *   entry that is heavier than the limit is not kept
 * @param now milliseconds since the epoch
 * @param weightOf returns the weight of a value. By default, the weight is 1, so the limit is the maximum number of
 *   entries.
 * @example const names = createExpiringMap<string>(10_000, Date.now)
 * names.set(id, 'Ana', 60_000)
 */
export function createExpiringMap<T>(limit: number, now: () => number, weightOf: (value: T) => number = () => 1) {
  // The oldest entry is the first.
  const entries = new Map<string, { readonly value: T; readonly until: number; readonly weight: number }>()
  let used = 0

  function remove(key: string) {
    used -= entries.get(key)?.weight ?? 0
    entries.delete(key)
  }

  function removeExpired() {
    let left = REMOVED_PER_INSERTION
    for (const [key, { until }] of entries) {
      if (until > now() || left-- === 0) return
      remove(key)
    }
  }

  return {
    get(key: string): T | undefined {
      const entry = entries.get(key)
      if (!entry) return undefined
      if (entry.until > now()) return entry.value
      remove(key)
      return undefined
    },
    /** @param ttlMs milliseconds until the entry expires; 0 or less removes the entry */
    set(key: string, value: T, ttlMs: number): void {
      remove(key)
      removeExpired()
      const weight = weightOf(value)
      if (ttlMs <= 0 || weight > limit) return
      for (const oldest of entries.keys()) {
        if (used + weight <= limit) break
        remove(oldest)
      }
      entries.set(key, { value, until: now() + ttlMs, weight })
      used += weight
    },
    delete: remove,
    /** Returns the entries that have not expired. The map may be changed during the iteration. */
    *entries(): Generator<readonly [key: string, value: T, leftMs: number]> {
      for (const [key, { value, until }] of entries) {
        const leftMs = until - now()
        if (leftMs > 0) yield [key, value, leftMs]
      }
    },
    /** The number of entries in memory, including expired entries that have not been removed yet. */
    get size() {
      return entries.size
    }
  }
}
