import type { Coordination, Once, Run, Settled } from './coordination.js'
import { createExpiringMap } from './expiring-map.js'

/** What a store over several processes has to know of the part that is in this one. */
export interface MemoryCoordination extends Coordination {
  isUnderWay(key: string): boolean
  /** Every kept result and every mark, with the milliseconds each has left. */
  results(): Iterable<readonly [key: string, value: unknown, leftMs: number]>
  marks(): Iterable<readonly [key: string, value: true, leftMs: number]>
}

// How many of each kind: a kept result is a session of some kilobytes, a mark is a short string.
const MOST_RESULTS = 10_000
const MOST_MARKS = 200_000
// Longer than `refresh.keepSeconds` can be: what is kept for longer is all that leads to tokens which no browser was given.
// The many of the last minute must not push it out, nor a day of it those, which are asked for now.
const LONG_MS = 3_600_000

const ONLY_PROCESS: Run = { isAlone: () => false, leave: async () => {} }

/** Coordination within this process. */
export function createMemoryCoordination(now: () => number): MemoryCoordination {
  const underWay = new Map<string, Promise<Settled<unknown>>>()
  const kept = createExpiringMap<unknown>(MOST_RESULTS, now, (_key, keepMs) => (keepMs > LONG_MS ? 'long' : 'short'))
  const marks = createExpiringMap<true>(MOST_MARKS, now, kindOf)

  async function run<T>(key: string, work: (run: Run<T>) => Promise<Settled<T>>): Promise<Once<T>> {
    const running = work(ONLY_PROCESS)
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
    async once<T>(key: string, work: (run: Run<T>) => Promise<Settled<T>>, accept: (kept: T) => boolean = () => true) {
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
    status: () => ({ store: 'memory' }),
    async close() {},
    isUnderWay: key => underWay.has(key),
    results: () => kept.entries(),
    marks: () => marks.entries()
  }
}

function kindOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf(':')))
}
