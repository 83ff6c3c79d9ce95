import { createExpiringMap } from '../support/expiring-map.js'
import type { LocalStore, Mark } from './local-store.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/**
 * A result that this process created. The process also keeps the result in memory, because Redis may lose it or may not
 * have stored it.
 */
export interface HeldResult {
  readonly value: unknown
  /** The id of the run (one execution of the work) that created the result. */
  readonly run: string
  /** The id of the earlier run whose result was not accepted, or NO_RUN. */
  readonly refused: string
  /** True if the value contains tokens that are stored nowhere else. */
  readonly hasTokens: boolean
  /** The number of times that the result of this key has been replaced, 0 by default. */
  readonly version?: number
  /** The time at which Redis stored the result, from `performance.now()`. Infinity until Redis has stored it. */
  storedAt: number
}

/**
 * Writes results and marks to Redis. A mark is a key without a value, for example for a session that has logged out.
 * After a failure of Redis, the publisher writes the data again that Redis may have lost.
 */
export interface RedisPublisher {
  /**
   * Stores a result and releases the lock. If Redis already has the result of another run and that result has
   * precedence, nothing is stored and the encrypted text of the other result is returned.
   */
  publish(key: string, result: Omit<HeldResult, 'storedAt'>, keepMs: number): Promise<string | undefined>
  mark(key: string, ttlMs: number): Promise<void>
  /**
   * Releases a lock that the run may own, for example because the reply to its request was lost. If Redis cannot be
   * used now, the lock is released when Redis comes up.
   */
  releaseLater(key: string, run: string): void
  /**
   * Writes again the results and marks that Redis may not have. These are the results and marks that could not be
   * written, and those that were written later than 5 seconds before `lostAt`. Also releases the locks that could not be
   * released.
   * @param lostAt the time at which Redis became unusable, from `performance.now()`
   * @param hasLostData if true, all results and marks are written again
   */
  publishAgain(lostAt: number, hasLostData: boolean): Promise<void>
}

// Redis replicates asynchronously. After a failover, the new master may lack the last writes of the old master, usually
// those of the last second.
const UNCERTAIN_MS = 5000
// Results are encrypted and sent in batches, so that this process can handle requests between two batches.
const BATCH_SIZE = 200
const MAX_ABANDONED_LOCKS = 10_000

export function createRedisPublisher(
  link: Pick<RedisLink, 'send' | 'state'>,
  scripts: RedisScripts,
  seal: ResultSeal,
  local: LocalStore<HeldResult>,
  { markKey, now, lockMs }: { markKey: (key: string) => string; now: () => number; lockMs: number }
): RedisPublisher {
  const abandoned = createExpiringMap<string>(MAX_ABANDONED_LOCKS, now)

  function isUncertain(storedAt: number, lostAt: number): boolean {
    return storedAt >= lostAt - UNCERTAIN_MS
  }

  async function writeMark(key: string, mark: Mark, ttlMs: number) {
    await link.send(commands => commands.set(markKey(key), '1', 'PX', Math.max(1, Math.ceil(ttlMs))))
    mark.storedAt = performance.now()
  }

  async function writeResult(key: string, held: HeldResult, ttlMs: number): Promise<string | undefined> {
    const text = seal.seal(key, held)
    let other: string | null = null
    if (Number.isFinite(held.storedAt)) await link.send(scripts.restore(key, text, ttlMs))
    else other = await link.send(scripts.finish(key, held.run, held.refused, text, ttlMs))
    held.storedAt = performance.now()
    return other ?? undefined
  }

  function* missingWrites(lostAt: number, hasLostData: boolean): Iterable<Promise<unknown>> {
    for (const [key, run] of abandoned.entries()) {
      yield link.send(scripts.release(key, run)).then(() => abandoned.delete(key))
    }
    for (const [key, held, leftMs] of local.results.entries()) {
      if (hasLostData || isUncertain(held.storedAt, lostAt)) yield writeResult(key, held, leftMs)
    }
    for (const [key, mark, leftMs] of local.marks.entries()) {
      if (hasLostData || isUncertain(mark.storedAt, lostAt)) yield writeMark(key, mark, leftMs)
    }
  }

  return {
    async publish(key, result, keepMs) {
      const held = { ...result, storedAt: Number.POSITIVE_INFINITY }
      local.keep(key, held, keepMs)
      // If the write fails, the result stays in memory, and `publishAgain` writes it when Redis comes up.
      return writeResult(key, held, keepMs).catch(() => undefined)
    },
    async mark(key, ttlMs) {
      const mark = { storedAt: Number.POSITIVE_INFINITY }
      local.marks.set(key, mark, ttlMs)
      await writeMark(key, mark, ttlMs).catch(() => {})
    },
    releaseLater(key, run) {
      abandoned.set(key, run, lockMs)
      link.send(scripts.release(key, run)).then(
        () => abandoned.delete(key),
        () => {}
      )
    },
    async publishAgain(lostAt, hasLostData) {
      let batch: Promise<unknown>[] = []
      for (const write of missingWrites(lostAt, hasLostData)) {
        batch.push(write.catch(() => {}))
        if (batch.length < BATCH_SIZE) continue
        await Promise.all(batch)
        batch = []
        if (link.state() !== 'up') return
      }
      await Promise.all(batch)
    }
  }
}
