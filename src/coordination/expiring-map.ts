/** A map whose entries end by themselves and whose size is bounded: the oldest go first when it is full. */
export interface ExpiringMap<T> {
  get(key: string): T | undefined
  set(key: string, value: T, ttlMs: number): void
  delete(key: string): void
  /** What has not ended, each with the milliseconds it has left. */
  entries(): Iterable<readonly [key: string, value: T, leftMs: number]>
  readonly size: number
}

// Each insertion looks at a few of the oldest entries, so that what expired goes without a timer and without a sweep.
const LOOK_AT = 4

export function createExpiringMap<T>(most: number, now: () => number): ExpiringMap<T> {
  const entries = new Map<string, { value: T; until: number }>()

  function dropOldest() {
    let looked = 0
    for (const [key, { until }] of entries) {
      if (until <= now() || entries.size > most) entries.delete(key)
      if (++looked >= LOOK_AT) return
    }
  }

  return {
    get(key) {
      const entry = entries.get(key)
      if (!entry) return undefined
      if (entry.until > now()) return entry.value
      entries.delete(key)
      return undefined
    },
    set(key, value, ttlMs) {
      entries.delete(key)
      entries.set(key, { value, until: now() + ttlMs })
      dropOldest()
    },
    delete(key) {
      entries.delete(key)
    },
    *entries() {
      for (const [key, { value, until }] of entries) {
        const leftMs = until - now()
        if (leftMs > 0) yield [key, value, leftMs] as const
      }
    },
    get size() {
      return entries.size
    }
  }
}
