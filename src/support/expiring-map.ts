/** A map with a maximum size. Each entry has a lifetime. */
interface ExpiringMap<T> {
  get(key: string): T | undefined
  /** @param ttlMs milliseconds until the entry expires; 0 or less removes the entry */
  set(key: string, value: T, ttlMs: number): void
  delete(key: string): void
  /** Returns the entries that have not expired. The map may be changed during the iteration. */
  entries(): Iterable<readonly [key: string, value: T, leftMs: number]>
  /** The number of entries in memory, including expired entries that have not been removed yet. */
  readonly size: number
}

interface Entry<T> {
  readonly value: T
  readonly until: number
  readonly group: string
}

// Each insertion visits up to this many groups, in turn, and removes up to this many expired entries from each of them.
// So no timer is needed to remove expired entries, and the time for an insertion depends neither on the number of entries
// nor on the number of groups.
const GROUPS_PER_INSERTION = 4
const REMOVED_PER_GROUP = 4

/**
 * @param limit the maximum number of entries in each group; a new entry evicts the oldest entry of a full group
 * @param now milliseconds since the epoch
 * @param groupOf returns the name of the group of an entry. The entries of a group should have similar lifetimes,
 *   because expired entries are only searched among the oldest entries of the group. By default there is one group.
 * @example const names = createExpiringMap<string>(10_000, Date.now)
 * names.set(id, 'Ana', 60_000)
 */
export function createExpiringMap<T>(
  limit: number,
  now: () => number,
  groupOf: (key: string, ttlMs: number) => string = () => ''
): ExpiringMap<T> {
  const all = new Map<string, Entry<T>>()
  // The group that was visited last comes last. There are no empty groups.
  const groups = new Map<string, Map<string, Entry<T>>>()

  function add(key: string, entry: Entry<T>) {
    const group = groups.get(entry.group) ?? new Map<string, Entry<T>>()
    groups.set(entry.group, group)
    group.set(key, entry)
    all.set(key, entry)
  }

  function remove(key: string) {
    const name = all.get(key)?.group
    if (name === undefined) return
    all.delete(key)
    const group = groups.get(name)
    group?.delete(key)
    if (group?.size === 0) groups.delete(name)
  }

  function removeExpired(group: Map<string, Entry<T>>) {
    let left = REMOVED_PER_GROUP
    for (const [key, { until }] of group) {
      if (until > now() || left-- === 0) return
      remove(key)
    }
  }

  function removeExpiredInSomeGroups() {
    let left = Math.min(GROUPS_PER_INSERTION, groups.size)
    for (const [name, group] of groups) {
      if (left-- === 0) return
      removeExpired(group)
      if (groups.delete(name)) groups.set(name, group)
    }
  }

  return {
    get(key) {
      const entry = all.get(key)
      if (!entry) return undefined
      if (entry.until > now()) return entry.value
      remove(key)
      return undefined
    },
    set(key, value, ttlMs) {
      remove(key)
      removeExpiredInSomeGroups()
      if (ttlMs <= 0) return
      const group = groupOf(key, ttlMs)
      const full = groups.get(group)
      const [oldest] = full && full.size >= limit ? full.keys() : []
      if (oldest !== undefined) remove(oldest)
      add(key, { value, until: now() + ttlMs, group })
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
