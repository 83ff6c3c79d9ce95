import { createExpiringMap } from '../support/expiring-map.js'
import type { LocalStore, Mark } from './local-store.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/** A result of this process. It stays in memory too, because Redis may lose it or may not have received it. */
export interface HeldResult {
  readonly value: unknown
  readonly run: string
  readonly refused: string
  readonly hasTokens: boolean
  /** As in SealedResult. */
  readonly version?: number
  /** The time at which Redis stored the result, from `performance.now()`. Infinity until Redis has stored it. */
  storedAt: number
}

/** Writes results and marks to Redis, and writes them again after Redis was down. */
export interface RedisPublisher {
  /** Stores a result and releases the lock. If the result of another run has precedence, returns its text. */
  publish(key: string, result: Omit<HeldResult, 'storedAt'>, keepMs: number): Promise<string | undefined>
  mark(key: string, ttlMs: number): Promise<void>
  /** Releases a lock that Redis may have granted although this process did not receive the reply. */
  releaseLater(key: string, run: string): void
  /**
   * Writes the data that Redis may not have: everything that failed to be written, and everything that was written shortly
   * before Redis became unusable.
   * @param hasLostData if true, writes all data again
   */
  publishAgain(lostAt: number, hasLostData: boolean): Promise<void>
}

// After a failover, the new master lacks the last writes of the old one, usually those of less than a second.
const UNCERTAIN_MS = 5000
// Data is encrypted and sent in batches, so that requests are served in between.
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
      // If the write fails, the result stays in memory and is written again when Redis is back.
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
