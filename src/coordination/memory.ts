import type { Coordination, Once, Settled } from './coordination.js'
import { createExpiringMap } from './expiring-map.js'

// A kept result is a session of some kilobytes and lives a minute; a mark is a short string and lives a day.
const MOST_RESULTS = 10_000
const MOST_MARKS = 200_000

/** Coordination within this process. */
export function createMemoryCoordination(now: () => number): Coordination {
  const underWay = new Map<string, Promise<Settled<unknown>>>()
  const kept = createExpiringMap<unknown>(MOST_RESULTS, now)
  const marks = createExpiringMap<true>(MOST_MARKS, now)

  async function run<T>(key: string, work: () => Promise<Settled<T>>): Promise<Once<T>> {
    const running = work()
    underWay.set(key, running)
    try {
      const { value, keepMs } = await running
      if (keepMs > 0) kept.set(key, value, keepMs)
      else kept.delete(key)
      return { value, how: 'ran' }
    } finally {
      underWay.delete(key)
    }
  }

  return {
    async once<T>(key: string, work: () => Promise<Settled<T>>, accept: (kept: T) => boolean = () => true) {
      const running = underWay.get(key) as Promise<Settled<T>> | undefined
      if (running) return { value: (await running).value, how: 'joined' }
      const value = kept.get(key) as T | undefined
      return value !== undefined && accept(value) ? { value, how: 'kept' } : run(key, work)
    },
    async result<T>(key: string) {
      try {
        const running = underWay.get(key)
        return (running ? (await running).value : kept.get(key)) as T | undefined
      } catch {
        return undefined
      }
    },
    async mark(key, ttlMs) {
      marks.set(key, true, ttlMs)
    },
    async isMarked(key) {
      return marks.get(key) === true
    },
    async close() {}
  }
}
