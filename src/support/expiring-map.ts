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
  readonly weight: number
}

interface Group<T> {
  readonly entries: Map<string, Entry<T>>
  weight: number
}

// Each insertion visits up to this many groups, in turn, and removes up to this many expired entries from each of them.
// So no timer is needed to remove expired entries, and the time for an insertion depends neither on the number of entries
// nor on the number of groups.
const GROUPS_PER_INSERTION = 4
const REMOVED_PER_GROUP = 4

/**
 * @param limit the maximum weight of all entries of a group; a new entry evicts the oldest entries until there is room for it,
 *   and an entry that is heavier than the limit is not kept
 * @param now milliseconds since the epoch
 * @param groupOf returns the name of the group of an entry. The entries of a group should have similar lifetimes,
 *   because expired entries are only searched among the oldest entries of the group. By default there is one group.
 * @param weightOf returns the weight of a value. By default it is 1, so the limit is a number of entries.
 * @example const names = createExpiringMap<string>(10_000, Date.now)
 * names.set(id, 'Ana', 60_000)
 */
export function createExpiringMap<T>(
  limit: number,
  now: () => number,
  groupOf: (key: string, ttlMs: number) => string = () => '',
  weightOf: (value: T) => number = () => 1
): ExpiringMap<T> {
  const all = new Map<string, Entry<T>>()
  // The group that was visited last comes last. There are no empty groups.
  const groups = new Map<string, Group<T>>()

  function add(key: string, entry: Entry<T>) {
    const group = groups.get(entry.group) ?? { entries: new Map<string, Entry<T>>(), weight: 0 }
    groups.set(entry.group, group)
    group.entries.set(key, entry)
    group.weight += entry.weight
    all.set(key, entry)
  }

  function remove(key: string) {
    const entry = all.get(key)
    if (!entry) return
    all.delete(key)
    const group = groups.get(entry.group) as Group<T>
    group.entries.delete(key)
    group.weight -= entry.weight
    if (group.entries.size === 0) groups.delete(entry.group)
  }

  function removeExpired({ entries }: Group<T>) {
    let left = REMOVED_PER_GROUP
    for (const [key, { until }] of entries) {
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
      const weight = weightOf(value)
      if (ttlMs <= 0 || weight > limit) return
      const group = groupOf(key, ttlMs)
      const { entries, weight: used } = groups.get(group) ?? { entries: new Map<string, Entry<T>>(), weight: 0 }
      let excess = used + weight - limit
      for (const [oldest, { weight: freed }] of entries) {
        if (excess <= 0) break
        remove(oldest)
        excess -= freed
      }
      add(key, { value, until: now() + ttlMs, group, weight })
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
