/**
 * The coordination store for several processes that share a Redis. In each process, callers with the same key first
 * share one run in memory (`single-flight.ts`). This run then asks Redis for the lock, so only one process sends
 * a single-use token to the identity provider. While Redis cannot be used, no process sends one, unless the operator has
 * set `redisAway: alone`.
 */
import type { Logger } from 'pino'
import type { Keyring } from '../sealing/keyring.js'
import type { Coordination, Once, OnceOptions, Work } from './coordination.js'
import { createLocalStore } from './local-store.js'
import { createBroadcast } from './redis-broadcast.js'
import type { RedisClient, RedisEvents } from './redis-client.js'
import { createRedisHealth } from './redis-health.js'
import { createRedisLink, type LinkTiming } from './redis-link.js'
import { acceptAny, createRunInOneProcess } from './redis-once.js'
import { createRedisPublisher, type HeldResult } from './redis-publisher.js'
import { createRedisResults } from './redis-results.js'
import { createRedisRuns, type RunTiming } from './redis-runs.js'
import { createRedisScripts, type LockTimes } from './redis-scripts.js'
import { createResultSeal } from './result-seal.js'
import { createSingleFlight } from './single-flight.js'
import { createWakeups } from './wakeups.js'

export interface RedisCoordinationParts {
  readonly open: (events: RedisEvents) => Promise<RedisClient>
  /** The prefix of all keys. Applications that share a Redis have different prefixes. */
  readonly prefix: string
  /** Its keys encrypt the results in Redis and authenticate the messages between replicas. */
  readonly keyring: Pick<Keyring, 'sealer'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /**
   * The setting `redisAway`. While Redis cannot be used, `wait` makes calls fail, so that clients repeat their requests
   * later, and `alone` runs the work without a lock.
   */
  readonly whenAway: 'wait' | 'alone'
  readonly timing: RedisTiming
}

/** All times are in milliseconds. */
export interface RedisTiming extends LinkTiming, LockTimes, RunTiming {
  /** The time limit after which a request stops waiting for a result. */
  readonly answerMs: number
  /** The time that a request waits for a lock that another replica owns. */
  readonly waitMs: number
}

// This program writes every mark with an expiry. If another program has removed the expiry, the mark is cached for a day.
const ENDLESS_MARK_MS = 86_400_000

export function createRedisCoordination(parts: RedisCoordinationParts): Coordination {
  const { open, prefix, keyring, now, log, whenAway, timing } = parts
  const markKey = (key: string) => `${prefix}mark:${key}`
  const local = createLocalStore<HeldResult>(now)
  const wakeups = createWakeups()
  const flights = createSingleFlight(timing.answerMs)
  const receivers = {
    wake: wakeups.wake,
    mark: (key: string, ttlMs: number) =>
      local.marks.set(key, { storedAt: performance.now() }, Math.min(ttlMs, ENDLESS_MARK_MS)),
    pause: local.pause
  }
  const broadcast = createBroadcast({ prefix, keyring, now, receivers })
  const scripts = createRedisScripts(prefix, broadcast.wakeChannel, timing)
  const seal = createResultSeal(keyring.sealer('shared results'))
  const link = createRedisLink({
    open: events => open({ ...events, channels: broadcast.channels, onMessage: broadcast.receive }),
    health: createRedisHealth(prefix),
    async onUsable({ lostAt, hasLostData }) {
      await runs.extendAll()
      await publisher.publishAgain(lostAt, hasLostData)
    },
    log,
    timing
  })
  const runs = createRedisRuns(link, scripts, seal, timing)
  const lockMs = timing.leaseMs + timing.stalledMs
  const publisher = createRedisPublisher(link, scripts, seal, local, { markKey, now, lockMs })
  const results = createRedisResults(link, scripts, seal, local, { log, whenAway })
  const { waitMs } = timing
  const steps = { link, scripts, runs, publisher, results, local, wakeups, whenAway, waitMs }
  const runInOneProcess = createRunInOneProcess(steps)

  return {
    async once<T>(key: string, work: Work<T>, options: OnceOptions<T> = {}): Promise<Once<T>> {
      const { accept = acceptAny } = options
      for (;;) {
        const { value: once, how } = await flights.run(key, () => runInOneProcess(key, work, options))
        if (how === 'ran') return once
        if (once.how !== 'kept') return { ...once, how: 'joined' }
        // This call waited for a run, and the run found a kept result. Every caller must check this result with its own
        // `accept`.
        if (accept(once.value)) return once
      }
    },
    peek: results.peek,
    update: results.update,
    confirm(key, keepMs) {
      if (local.confirm(key, keepMs)) link.send(scripts.expire(key, keepMs)).catch(() => {})
    },
    async mark(key, ttlMs, reach = 'store') {
      if (reach === 'everyone') link.attempt(broadcast.mark(key, ttlMs))
      await publisher.mark(key, ttlMs)
    },
    async isMarked(key) {
      if (local.marks.get(key) !== undefined) return true
      const leftMs = await link.send(commands => commands.pttl(markKey(key))).catch(() => -2)
      if (leftMs === -2) return false
      local.marks.set(key, { storedAt: performance.now() }, leftMs < 0 ? ENDLESS_MARK_MS : leftMs)
      return true
    },
    isMarkedHere: key => local.marks.get(key) !== undefined,
    pauseCalls(ms) {
      local.pause(ms)
      link.attempt(broadcast.pause(ms))
    },
    pausedMs: local.pausedMs,
    status() {
      const state = link.state()
      return { store: state === 'up' || state === 'connecting' ? 'redis' : 'away' }
    },
    idle: flights.idle,
    async close() {
      runs.close()
      await link.close()
    }
  }
}
