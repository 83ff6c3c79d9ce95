import type { Coordination, Once, OnceOptions, Run, Work } from './coordination.js'
import { createLocalStore } from './local-store.js'
import { createSingleFlight } from './single-flight.js'

export interface MemoryCoordinationOptions {
  /** The time in milliseconds that a request may wait for a result. */
  readonly answerMs?: number
  /** The time limit of one execution of the work, in milliseconds. */
  readonly workMs?: number
}

/**
 * Creates a store for a server that runs as one process. Its data is lost when the process ends.
 * @param now milliseconds since the epoch
 */
export function createMemoryCoordination(
  now: () => number,
  { answerMs = Number.POSITIVE_INFINITY, workMs = 60_000 }: MemoryCoordinationOptions = {}
): Coordination {
  const flights = createSingleFlight(answerMs)
  const local = createLocalStore<unknown>(now)

  async function perform<T>(key: string, work: Work<T>, previous: T | undefined) {
    const { value, keepMs } = await work(createRun(previous, workMs))
    local.keep(key, value, keepMs)
    return value
  }

  return {
    async once<T>(key: string, work: Work<T>, { accept }: OnceOptions<T> = {}): Promise<Once<T>> {
      const kept = flights.isRunning(key) ? undefined : (local.results.get(key) as T | undefined)
      if (kept !== undefined && (accept?.(kept) ?? true)) return { value: kept, how: 'kept' }
      return flights.run(key, () => perform(key, work, kept))
    },
    peek: async <T>(key: string) => local.results.get(key) as T | undefined,
    async update<T>(key: string, change: (kept: T) => T | undefined) {
      const kept = local.results.get(key) as T | undefined
      const changed = kept === undefined ? undefined : change(kept)
      if (changed !== undefined) local.results.replace(key, changed)
      return changed ?? kept
    },
    confirm(key, keepMs) {
      local.confirm(key, keepMs)
    },
    async mark(key, ttlMs) {
      local.marks.set(key, { storedAt: 0 }, ttlMs)
    },
    isMarked: async key => local.marks.get(key) !== undefined,
    isMarkedHere: key => local.marks.get(key) !== undefined,
    pauseCalls: local.pause,
    pausedMs: local.pausedMs,
    status: () => ({ store: 'memory' }),
    idle: flights.idle,
    async close() {}
  }
}

/**
 * Creates the argument of the work. No other process can take over, so the work needs neither checkpoints nor a lock.
 */
function createRun<T>(previous: T | undefined, workMs: number): Run<T> {
  const deadline = performance.now() + workMs
  return {
    stalledOwnerMs: 0,
    previous,
    remainingMs: () => Math.max(1, Math.round(deadline - performance.now())),
    async checkpoint() {},
    async ensureOwned() {}
  }
}
