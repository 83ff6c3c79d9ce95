import { createExpiringMap } from './expiring-map.js'
import type { LocalStore, Mark } from './local-store.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/** A result of this process, kept in its memory for the case that Redis loses it or could not be told of it. */
export interface HeldResult {
  readonly value: unknown
  readonly run: string
  readonly refused: string
  readonly hasTokens: boolean
  /** As in SealedResult. */
  readonly version?: number
  /** When Redis stored it, on the clock of `performance.now()`; Infinity while Redis has not. */
  storedAt: number
}

/** Writes results and marks to Redis, and writes them again after Redis was away. */
export interface RedisPublisher {
  /** Stores a result and releases the lock. Returns the text of another run's result if that one stays. */
  publish(key: string, result: Omit<HeldResult, 'storedAt'>, keepMs: number): Promise<string | undefined>
  mark(key: string, ttlMs: number): Promise<void>
  /** Releases a lock that this process may have been granted without learning of it. */
  releaseLater(key: string, run: string): void
  /**
   * Writes what Redis may lack: everything it was not told, and everything written shortly before it was lost.
   * @param everything also what it stored earlier, because Redis has lost data
   */
  publishAgain(lostAt: number, everything: boolean): Promise<void>
}

// A replica that is promoted after a failover lacks the last writes of its master: those of less than a second, usually.
const UNCERTAIN_MS = 5000
// Sealing and sending happens in batches, so that requests are served in between.
const BATCH = 200
const ABANDONED_LOCKS = 10_000

export function createRedisPublisher(
  link: Pick<RedisLink, 'send' | 'state'>,
  scripts: RedisScripts,
  seal: ResultSeal,
  local: LocalStore<HeldResult>,
  { markKey, now, lockMs }: { markKey: (key: string) => string; now: () => number; lockMs: number }
): RedisPublisher {
  const abandoned = createExpiringMap<string>(ABANDONED_LOCKS, now)

  function isUncertain(storedAt: number, lostAt: number): boolean {
    return storedAt >= lostAt - UNCERTAIN_MS
  }

  async function writeMark(key: string, mark: Mark, ttlMs: number) {
    await link.send(commands => commands.set(markKey(key), '1', 'PX', Math.max(1, Math.ceil(ttlMs))))
    mark.storedAt = performance.now()
  }

  async function writeResult(key: string, held: HeldResult, ttlMs: number): Promise<string | undefined> {
    const text = seal.seal(key, held)
    const other = await link.send(
      Number.isFinite(held.storedAt)
        ? async commands =>
            scripts
              .restore(
                key,
                text,
                ttlMs
              )(commands)
              .then(() => null)
        : scripts.finish(key, held.run, held.refused, text, ttlMs)
    )
    held.storedAt = performance.now()
    return other ?? undefined
  }

  function* missingWrites(lostAt: number, everything: boolean): Iterable<Promise<unknown>> {
    for (const [key, run] of abandoned.entries()) {
      yield link.send(scripts.release(key, run)).then(() => abandoned.delete(key))
    }
    for (const [key, held, leftMs] of local.results.entries()) {
      if (everything || isUncertain(held.storedAt, lostAt)) yield writeResult(key, held, leftMs)
    }
    for (const [key, mark, leftMs] of local.marks.entries()) {
      if (everything || isUncertain(mark.storedAt, lostAt)) yield writeMark(key, mark, leftMs)
    }
  }

  return {
    async publish(key, result, keepMs) {
      const held = { ...result, storedAt: Number.POSITIVE_INFINITY }
      local.keep(key, held, keepMs)
      // A failure is no reason to fail: the result is held here, and Redis is told when it is back.
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
    async publishAgain(lostAt, everything) {
      let batch: Promise<unknown>[] = []
      for (const write of missingWrites(lostAt, everything)) {
        batch.push(write.catch(() => {}))
        if (batch.length < BATCH) continue
        await Promise.all(batch)
        batch = []
        if (link.state() !== 'up') return
      }
      await Promise.all(batch)
    }
  }
}
