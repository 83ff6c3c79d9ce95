interface Entry<T> {
  readonly value: T
  readonly until: number
  readonly weight: number
}

// Entries that expire within the same ten seconds are in one bucket, and are removed together. So the map needs no timer, and finds
// expired entries without searching all entries.
const BUCKET_MS = 10_000
const MAX_SETS_WITH_ITERATOR = 100

/**
 * Creates a map with a maximum size, in which each entry has its own lifetime. Unlike the package lru-cache, the map allocates no
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
  const entries = new Map<string, Entry<T>>()
  // An iterator that continues where it stopped, because a new one would pass all entries that were removed since the map last
  // grew. As long as an iterator exists, V8 keeps every value that was replaced since its last step, so it is dropped when the map
  // evicts nothing.
  let oldestKeys: IterableIterator<string> | undefined
  let setsSinceEviction = 0
  /** The keys by the time at which their entries expire. */
  const buckets = new Map<number, Set<string>>()
  let used = 0
  let sweptBucket: number | undefined

  function remove(key: string) {
    const entry = entries.get(key)
    if (!entry) return
    entries.delete(key)
    used -= entry.weight
    const number = bucketOf(entry.until)
    const keys = buckets.get(number)
    keys?.delete(key)
    if (keys?.size === 0) buckets.delete(number)
  }

  function removeExpired() {
    const present = bucketOf(now())
    if (present === sweptBucket) return
    sweptBucket = present
    for (const [number, keys] of buckets) if (number < present) for (const key of keys) remove(key)
  }

  function removeOldest() {
    setsSinceEviction = 0
    let next = oldestKeys?.next()
    if (!next || next.done) {
      oldestKeys = entries.keys()
      next = oldestKeys.next()
    }
    remove(next.value as string)
  }

  return {
    get(key: string): T | undefined {
      const entry = entries.get(key)
      return entry && entry.until > now() ? entry.value : undefined
    },
    /** @param ttlMs milliseconds until the entry expires; 0 or less removes the entry */
    set(key: string, value: T, ttlMs: number): void {
      remove(key)
      removeExpired()
      const weight = weightOf(value)
      if (ttlMs <= 0 || weight > limit) return
      while (used + weight > limit) removeOldest()
      if (++setsSinceEviction > MAX_SETS_WITH_ITERATOR) oldestKeys = undefined
      const until = now() + ttlMs
      entries.set(key, { value, until, weight })
      used += weight
      const number = bucketOf(until)
      const keys = buckets.get(number)
      if (keys) keys.add(key)
      else buckets.set(number, new Set([key]))
    },
    delete: remove,
    /** Returns the entries that have not expired. The map may be changed during the iteration. */
    *entries(): Generator<readonly [key: string, value: T, leftMs: number]> {
      for (const [key, { value, until }] of entries) {
        const leftMs = until - now()
        if (leftMs > 0) yield [key, value, leftMs]
      }
    },
    /** The number of entries. Entries that expired within the last ten seconds may still be counted. */
    get size() {
      removeExpired()
      return entries.size
    }
  }
}

function bucketOf(time: number): number {
  return Math.floor(time / BUCKET_MS)
}
