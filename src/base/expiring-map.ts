import { LRUCache } from 'lru-cache'

// Expired entries are removed at most this often, in milliseconds, because that takes a search of all entries.
const PURGE_INTERVAL_MS = 60_000

/**
 * Creates a map with a maximum size, in which each entry has its own lifetime.
 * @param limit the maximum weight of all entries; a new entry evicts the entries that were set first until there is room for it; an
 *   entry that is heavier than the limit is not kept
 * @param now milliseconds since the epoch
 * @param weightOf returns the weight of a value. By default, the weight is 1, so the limit is the maximum number of
 *   entries.
 * @example const names = createExpiringMap<string>(10_000, Date.now)
 * names.set(id, 'Ana', 60_000)
 */
export function createExpiringMap<T extends NonNullable<unknown>>(
  limit: number,
  now: () => number,
  weightOf: (value: T) => number = () => 1
) {
  // With `max` instead of `maxSize`, the cache would allocate memory in advance for all entries that its limit allows. With a
  // `ttlResolution`, it would read the clock only once in that time, also in tests that move the clock.
  const cache = new LRUCache<string, T>({
    maxSize: Math.min(limit, Number.MAX_SAFE_INTEGER),
    sizeCalculation: weightOf,
    perf: { now },
    ttlResolution: 0
  })
  let purgedAt = now()

  function purge(): void {
    if (Math.abs(now() - purgedAt) < PURGE_INTERVAL_MS) return
    purgedAt = now()
    cache.purgeStale()
  }

  return {
    // `get` would make the entry the newest one.
    get: (key: string): T | undefined => cache.peek(key),
    /** @param ttlMs milliseconds until the entry expires; 1 or less removes the entry */
    set(key: string, value: T, ttlMs: number): void {
      purge()
      // A replaced entry would keep its age.
      cache.delete(key)
      // The cache keeps an entry for one millisecond more than its `ttl`, and for ever with a `ttl` of 0.
      if (ttlMs > 1) cache.set(key, value, { ttl: ttlMs - 1 })
    },
    delete: (key: string): void => void cache.delete(key),
    /** Returns the entries that have not expired, the oldest one first. The map may be changed during the iteration. */
    entries: () => cache.rentries() as Iterable<[key: string, value: T]>,
    /** The number of entries. Entries that expired within the last minute may still be counted. */
    get size() {
      purge()
      return cache.size
    }
  }
}
