/**
 * Coordination between processes that share a Redis. Callers in one process first share a run in memory, so that one of
 * them asks Redis for the lock. Redis decides who may use a token: without it no token is used, unless the operator has
 * chosen `redisAway: alone`.
 */
import type { Logger } from 'pino'
import type { Sealer } from '../sealing/keyring.js'
import { type Coordination, CoordinationError, type Once, type OnceOptions, type Work } from './coordination.js'
import { createLocalStore } from './local-store.js'
import { createBroadcast } from './redis-broadcast.js'
import type { RedisClient, RedisEvents } from './redis-client.js'
import { StoredDataError } from './redis-errors.js'
import { createRedisHealth } from './redis-health.js'
import { createRedisLink, type LinkTiming } from './redis-link.js'
import { createRedisPublisher, type HeldResult } from './redis-publisher.js'
import { createRedisRuns, type OwnedLock, type RunTiming } from './redis-runs.js'
import { createRedisScripts, type LockTimes, NO_RUN } from './redis-scripts.js'
import { createResultSeal, newRunId, runOf, versionOf } from './result-seal.js'
import { createSingleFlight } from './single-flight.js'
import { createWakeups } from './wakeups.js'

export interface RedisCoordinationParts {
  readonly open: (events: RedisEvents) => Promise<RedisClient>
  /** Keeps applications that share a Redis apart. */
  readonly prefix: string
  readonly sealer: Sealer
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** While Redis cannot be used, work is refused (`wait`) or done without a lock (`alone`). */
  readonly whenAway: 'wait' | 'alone'
  readonly timing: RedisTiming
}

/** Milliseconds. */
export interface RedisTiming extends LinkTiming, LockTimes, RunTiming {
  /** How long a request waits for a result in all. */
  readonly answerMs: number
  /** How long a request waits for a lock that another replica owns. */
  readonly waitMs: number
}

// Should the wake-up message get lost, the waiter asks again after this time.
const LONGEST_SLEEP_MS = 1000
// Each attempt fails only because another one succeeded meanwhile.
const MOST_UPDATE_ATTEMPTS = 20
// A mark without an end was not written by this program; it counts for a day.
const ENDLESS_MARK_MS = 86_400_000

const acceptAny = () => true

export function createRedisCoordination(parts: RedisCoordinationParts): Coordination {
  const { open, prefix, sealer, now, log, whenAway, timing } = parts
  const markKey = (key: string) => `${prefix}mark:${key}`
  const local = createLocalStore<HeldResult>(now)
  const wakeups = createWakeups()
  const flights = createSingleFlight(timing.answerMs)
  const broadcast = createBroadcast(prefix, {
    wake: wakeups.wake,
    mark: (key, ttlMs) => local.marks.set(key, { storedAt: performance.now() }, Math.min(ttlMs, ENDLESS_MARK_MS)),
    pause: local.pause
  })
  const scripts = createRedisScripts(prefix, broadcast.wakeChannel, timing)
  const seal = createResultSeal(sealer)
  const link = createRedisLink({
    open: events => open({ ...events, channels: broadcast.channels, onMessage: broadcast.receive }),
    health: createRedisHealth(prefix),
    async onUp({ lostAt, hasLostData }) {
      await runs.extendAll()
      await publisher.publishAgain(lostAt, hasLostData)
    },
    log,
    timing
  })
  const runs = createRedisRuns(link, scripts, seal, timing)
  const lockMs = timing.leaseMs + timing.stalledMs
  const publisher = createRedisPublisher(link, scripts, seal, local, { markKey, now, lockMs })

  async function perform<T>(lock: OwnedLock<T>, work: Work<T>): Promise<Once<T>> {
    const { key, run, refused } = lock
    try {
      const { value, keepMs, hasTokens = false } = await work(runs.start(lock))
      runs.end(key)
      const other = await publisher.publish(key, { value, run, refused, hasTokens }, keepMs)
      if (other === undefined) return { value, how: 'ran' }
      return { value: openResult<T>(key, other).value, how: 'joined' }
    } catch (error) {
      runs.end(key)
      publisher.releaseLater(key, run)
      throw error
    }
  }

  async function runAmongAll<T>(key: string, work: Work<T>, options: OnceOptions<T>): Promise<Once<T>> {
    const { accept = acceptAny, canWait = true } = options
    const deadline = performance.now() + (canWait ? timing.waitMs : 0)
    let run = newRunId()
    let refused = NO_RUN
    let previous: T | undefined
    let hasWaited = false
    for (;;) {
      if (!(await link.isLockable(deadline))) return withoutRedis(key, work, accept)
      const waiter = wakeups.waiter(key)
      const askedAt = performance.now()
      const acquired = await acquire(key, run, refused)
      if (acquired?.kind === 'held') {
        const leftMs = deadline - performance.now()
        if (leftMs <= 0) {
          waiter.cancel()
          throw new CoordinationError('pending', 2)
        }
        hasWaited = true
        await waiter.sleep(Math.min(acquired.leaseMs + 1, leftMs, LONGEST_SLEEP_MS))
        continue
      }
      waiter.cancel()
      if (!acquired) {
        // Redis became unusable just now, and may still grant the lock to this run, which will release it.
        run = newRunId()
        continue
      }
      const { stalledOwnerMs } = acquired
      if (acquired.kind === 'mine') {
        return perform({ key, run, refused, previous, stalledOwnerMs, askedAt }, work)
      }
      const { value, isCheckpoint } = openResult<T>(key, acquired.text)
      if (hasWaited && !isCheckpoint) return { value, how: 'joined' }
      if (accept(value)) return { value, how: 'kept', ...(stalledOwnerMs > 0 && { stalledOwnerMs }) }
      refused = runOf(acquired.text)
      previous = value
    }
  }

  async function acquire(key: string, run: string, refused: string) {
    try {
      const generation = link.generation()
      const acquired = await link.send(scripts.acquire(key, run, refused))
      if (acquired.kind === 'mine') await link.ensureNothingLost(generation)
      return acquired
    } catch (error) {
      publisher.releaseLater(key, run)
      if (error instanceof StoredDataError) throw unreadable(key)
      return undefined
    }
  }

  /** Redis cannot be used. A result of this process is given out, since that uses no token. */
  async function withoutRedis<T>(key: string, work: Work<T>, accept: (kept: T) => boolean): Promise<Once<T>> {
    const held = local.results.get(key) as (HeldResult & { readonly value: T }) | undefined
    if (held && accept(held.value)) return { value: held.value, how: 'kept' }
    if (link.state() === 'closed') throw new CoordinationError('closing')
    if (whenAway === 'wait') throw new CoordinationError('store', 2)
    const lock = { key, run: newRunId(), refused: held?.run ?? NO_RUN, previous: held?.value, stalledOwnerMs: 0 }
    return perform({ ...lock, askedAt: Number.POSITIVE_INFINITY }, work)
  }

  function openResult<T>(key: string, text: string) {
    try {
      return seal.open<T>(key, text)
    } catch {
      throw unreadable(key)
    }
  }

  function unreadable(key: string): CoordinationError {
    const kind = key.slice(0, key.indexOf(':'))
    log.error({ event: 'stored_data_unreadable', kind }, 'Redis holds data that this server cannot read')
    return new CoordinationError('unreadable', 5)
  }

  return {
    async once<T>(key: string, work: Work<T>, options: OnceOptions<T> = {}): Promise<Once<T>> {
      const { accept = acceptAny } = options
      for (;;) {
        const { value: flown, how } = await flights.run(key, () => runAmongAll(key, work, options))
        if (how === 'ran') return flown
        if (flown.how !== 'kept') return { ...flown, how: 'joined' }
        // The run that this call joined found a kept result. Each caller decides for itself whether it is good enough.
        if (accept(flown.value)) return flown
      }
    },
    async peek<T>(key: string) {
      const held = () => local.results.get(key)?.value as T | undefined
      try {
        const text = await link.send(scripts.peek(key))
        return text === null ? held() : seal.open<T>(key, text).value
      } catch {
        return held()
      }
    },
    async update<T>(key: string, change: (kept: T) => T | undefined) {
      for (let attempt = 1; attempt <= MOST_UPDATE_ATTEMPTS; attempt++) {
        const text = await link.send(scripts.peek(key)).catch(() => Promise.reject(new CoordinationError('store', 2)))
        if (text === null) return undefined
        const { value } = openResult<T>(key, text)
        const changed = change(value)
        if (changed === undefined) return value
        const held = { value: changed, run: newRunId(), refused: NO_RUN, hasTokens: true, version: versionOf(text) + 1 }
        const replacement = scripts.replace(key, runOf(text), seal.seal(key, held))
        const leftMs = await link.send(replacement).catch(() => Promise.reject(new CoordinationError('store', 2)))
        if (leftMs <= 0) continue
        local.results.set(key, { ...held, storedAt: performance.now() }, leftMs)
        return changed
      }
      throw new CoordinationError('pending')
    },
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
