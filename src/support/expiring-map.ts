/** A map with a maximum size. Each entry has a lifetime. */
export interface ExpiringMap<T> {
  get(key: string): T | undefined
  /** @param ttlMs milliseconds until the entry expires; 0 or less removes the entry */
  set(key: string, value: T, ttlMs: number): void
  /** Replaces the value of an existing entry. The lifetime of the entry does not change. */
  replace(key: string, value: T): void
  delete(key: string): void
  /** Returns the entries that have not expired. The map may be changed during the iteration. */
  entries(): Iterable<readonly [key: string, value: T, leftMs: number]>
  /** The number of entries in memory, including expired entries that have not been removed yet. */
  readonly size: number
}

interface Entry<T> {
  value: T
  readonly until: number
  readonly group: Map<string, Entry<T>>
}

// Each insertion removes up to this many expired entries from each group, so no timer is needed to remove them.
const REMOVED_PER_INSERTION = 4

/**
 * @param limit the maximum number of entries in each group; a new entry evicts the oldest entry of a full group
 * @param now milliseconds since the epoch
 * @param groupOf returns the name of the group of an entry. The entries of a group should have similar lifetimes,
 *   because expired entries are only searched among the oldest entries of the group. By default there is one group.
 */
export function createExpiringMap<T>(
  limit: number,
  now: () => number,
  groupOf: (key: string, ttlMs: number) => string = () => ''
): ExpiringMap<T> {
  const all = new Map<string, Entry<T>>()
  const groups = new Map<string, Map<string, Entry<T>>>()

  function groupNamed(name: string): Map<string, Entry<T>> {
    const group = groups.get(name) ?? new Map<string, Entry<T>>()
    groups.set(name, group)
    return group
  }

  function remove(key: string) {
    all.get(key)?.group.delete(key)
    all.delete(key)
  }

  function removeExpired(group: Map<string, Entry<T>>) {
    let left = REMOVED_PER_INSERTION
    for (const [key, { until }] of group) {
      if (until > now() || left-- === 0) return
      remove(key)
    }
  }

  return {
    get(key) {
      const entry = all.get(key)
      if (entry && entry.until <= now()) remove(key)
      return entry && entry.until > now() ? entry.value : undefined
    },
    set(key, value, ttlMs) {
      remove(key)
      for (const group of groups.values()) removeExpired(group)
      if (ttlMs <= 0) return
      const group = groupNamed(groupOf(key, ttlMs))
      const [oldest] = group.keys()
      if (group.size >= limit && oldest !== undefined) remove(oldest)
      const entry = { value, until: now() + ttlMs, group }
      group.set(key, entry)
      all.set(key, entry)
    },
    replace(key, value) {
      const entry = all.get(key)
      if (entry) entry.value = value
    },
    delete: remove,
    *entries() {
      for (const [key, { value, until }] of all) {
        const leftMs = until - now()
        if (leftMs > 0) yield [key, value, leftMs] as const
      }
    },
    get size() {
      return all.size
    }
  }
}
