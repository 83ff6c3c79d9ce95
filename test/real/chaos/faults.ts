// The storms with one Redis or none. Each is a row: what fails at random, and what the storm needs for it.
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { createRandom } from '../../helpers/random.js'
import { type RedisServer, startRedis } from '../../helpers/redis-server.js'
import type { Teardown } from '../../helpers/scope.js'
import type { Play } from '../suite.js'
import type { Stage } from './stage.js'
import { type Load, type StormOptions, storm, type Variant } from './storm.js'
import { createQuota, createSlowness, createWeather } from './weather.js'

/** The options of the command line. */
export interface Options extends Variant {
  /** The length of each storm. */
  readonly seconds: number
}

export const storms: Readonly<Record<string, (options: Options) => readonly Play[]>> = {
  // The longest come first: their storms wait until the lease of a killed process ends (65 s).
  combined: options => (['cookie', 'redis'] as const).map(store => combined(options, store)),
  kill: options => [inBadWeather(options, 'processes killed', [300, 1500], killProcess)],
  full: options => ['noeviction', 'volatile-ttl', 'allkeys-lru'].map(policy => full(options, policy)),
  redis: options => [inBadWeather(options, 'Redis killed, and started without data', [2000, 4000], killRedis)],
  flush: options => [inBadWeather(options, 'FLUSHALL', [500, 2000], flush)],
  restart: options => [inBadWeather(options, 'processes replaced', [300, 1500], replaceProcess)],
  'one-process': options => [alone(options)],
  quota: options => [quota(options)]
}

type Fault = (load: Load, random: () => number, redis: RedisServer) => Promise<void>

const LOST_ANSWERS = 0.02

/** The provider fails in many ways, responses are lost, and a fault strikes again and again. */
function inBadWeather(options: Options, what: string, every: readonly [number, number], fault: Fault): Play {
  const { seconds } = options
  const more = { failure: `storm of ${seconds} s, ${what}`, provider: createWeather, lostAnswers: LOST_ANSWERS }
  return storm({ ...options, ...more }, startRedis, (load, redis) =>
    during(load, seconds, [{ every, fault: random => fault(load, random, redis) }])
  )
}

function alone(options: Options): Play {
  const { seconds } = options
  const failure = `storm of ${seconds} s, one process without Redis`
  const more = { failure, processes: 1, provider: createWeather, lostAnswers: LOST_ANSWERS }
  return storm({ ...options, ...more }, withoutRedis, () => pause(seconds * 1000))
}

const withoutRedis = async () => ({ url: undefined })

async function killRedis(_load: Load, random: () => number, redis: RedisServer): Promise<void> {
  await redis.kill()
  await pause(100 + random() * 1400)
  await redis.restart()
}

async function flush(_load: Load, _random: () => number, { admin }: RedisServer): Promise<void> {
  await admin.flushall()
}

async function killProcess({ stage }: Load, random: () => number): Promise<void> {
  const slot = anySlot(stage, random)
  await stage.fleet.end(slot, 'SIGKILL')
  await stage.fleet.start(slot)
}

/** As in a deployment. The process finishes its requests. */
async function replaceProcess({ stage, report }: Load, random: () => number): Promise<void> {
  const slot = anySlot(stage, random)
  const code = await stage.fleet.end(slot, 'SIGTERM')
  if (code !== 0) report.check('a process ends with 0', false, String(code))
  await stage.fleet.start(slot)
}

function anySlot({ fleet }: Stage, random: () => number): number {
  const { replicas } = fleet
  return replicas[Math.floor(random() * replicas.length)]?.slot ?? 0
}

interface Sequence {
  /** The shortest and the longest time before each fault, in milliseconds. */
  readonly every: readonly [from: number, to: number]
  fault(random: () => number): Promise<void>
}

/** Repeats the faults for some seconds. Each has its own sequence, so that they overlap. Resolves when the last of them has ended. */
async function during(load: Load, seconds: number, sequences: readonly Sequence[]): Promise<void> {
  const end = performance.now() + seconds * 1000
  const counts = await Promise.all(
    sequences.map(async ({ every: [from, to], fault }) => {
      const random = createRandom(Math.floor(load.random() * 2 ** 32))
      for (let count = 0; ; count++) {
        const waitMs = from + random() * (to - from)
        const leftMs = end - performance.now()
        await pause(Math.min(waitMs, Math.max(0, leftMs)))
        if (waitMs >= leftMs) return count
        await fault(random)
      }
    })
  )
  load.report.figures({ faults: counts.join(', ') })
}

/** How much longer than the others this storm lasts, so that faults overlap. */
const COMBINED_FACTOR = 5
/** The longest fault lasts for this share of the storm. */
const MAX_FAULT = 1 / 6
/** The longest time between two faults, as a multiple of the longest fault. */
const CALM = 2.5
/** The share of faults in which a process is killed. Otherwise it is stopped, as a virtual machine can be. */
const KILLED = 0.3

/**
 * Processes are killed or stopped, and Redis is killed or stopped, in parallel. Redis writes every change to its
 * append-only file, so it loses nothing when it is killed.
 */
function combined(options: Options, store: StormOptions['store']): Play {
  const seconds = options.seconds * COMBINED_FACTOR
  const longestMs = seconds * 1000 * MAX_FAULT
  const failure = `processes and Redis killed or stopped for ${seconds} s`
  const more = { failure, store, timeLimitMs: 10_000, provider: createSlowness }
  const users = Math.ceil(options.users / 2)
  const openRedis = (scope: Teardown) => startRedis(scope, ['--appendonly', 'yes', '--appendfsync', 'always'])
  return storm({ ...options, ...more, users }, openRedis, (load, redis) => {
    const { fleet } = load.stage

    async function disturbProcess(slot: number, random: () => number): Promise<void> {
      if (random() < KILLED) {
        await fleet.end(slot, 'SIGKILL')
        await pause((random() * longestMs) / 4)
        await fleet.start(slot)
      } else {
        const { signal } = fleet.inSlot(slot).program
        signal('SIGSTOP')
        await pause(random() * longestMs)
        signal('SIGCONT')
      }
    }

    async function disturbRedis(random: () => number): Promise<void> {
      if (random() < 0.5) {
        await redis.kill()
        await pause((random() * longestMs) / 4)
        await redis.restart()
      } else {
        redis.pause()
        await pause((random() * longestMs) / 2)
        redis.resume()
      }
    }

    const every = [0, CALM * longestMs] as const
    const ofProcesses = fleet.replicas.map(({ slot }) => ({
      every,
      fault: (random: () => number) => disturbProcess(slot, random)
    }))
    return during(load, seconds, [{ every, fault: random => load.outage(() => disturbRedis(random)) }, ...ofProcesses])
  })
}

/** Redis is full of another application's keys and evicts keys according to its policy. */
function full(options: Options, policy: string): Play {
  const failure = `Redis is full for ${options.seconds} s, ${policy}`
  const users = Math.ceil(options.users / 2)
  const openRedis = (scope: Teardown) => startRedis(scope, ['--maxmemory-policy', policy])
  return storm({ ...options, failure, users }, openRedis, async ({ report }, { admin }) => {
    const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
    await admin.config('SET', 'maxmemory', used + ROOM_BYTES)
    const end = performance.now() + options.seconds * 1000
    let rejected = 0
    for (let count = 0; performance.now() < end; count += KEYS_AT_A_TIME) {
      rejected += await writeForeignKeys(admin, count)
      await pause(EVERY_MS)
    }
    const evicted = Number(/evicted_keys:(\d+)/.exec(await admin.info('stats'))?.[1])
    await admin.config('SET', 'maxmemory', 0)
    report.figures({ 'writes rejected': rejected, 'keys evicted': evicted })
    report.check('Redis was full', rejected + evicted > 0)
  })
}

const ROOM_BYTES = 1024 * 1024
const VALUE = 'x'.repeat(8000)
const KEYS_AT_A_TIME = 50
const EVERY_MS = 20
// Longer than the lifetime of any key of the servers, so `volatile-ttl` evicts the servers' keys first.
const LIFETIME_SECONDS = 100_000

/** Returns how many of the writes Redis has rejected. */
async function writeForeignKeys(redis: Redis, first: number): Promise<number> {
  const pipeline = redis.pipeline()
  for (let n = 0; n < KEYS_AT_A_TIME; n++) pipeline.set(`foreign:${first + n}`, VALUE, 'EX', LIFETIME_SECONDS)
  return ((await pipeline.exec()) ?? []).filter(([error]) => error !== null).length
}

const WINDOWS = 4
const WINDOW_MS = 3000
const ALLOWED = 20
/** The lowest acceptable share of the quota that is used. */
const LEAST_SHARE = 0.75
const MAX_REFUSED = 2 / 3

/** The provider allows a limited number of calls in each time window, and many more sessions need a refresh. */
function quota(options: Options): Play {
  const failure = `quota of ${ALLOWED} calls in ${WINDOW_MS / 1000} s`
  const users = Math.ceil(options.users / 2)
  return storm({ ...options, failure, users, processes: 2 }, startRedis, async ({ stage, report }) => {
    const { behaviour, counts } = createQuota(ALLOWED, WINDOW_MS)
    stage.provider.follow(behaviour)
    await pause(WINDOWS * WINDOW_MS - 200)
    const { asked, refused } = counts
    const used = asked - refused
    report.figures({ 'calls used': used, allowed: WINDOWS * ALLOWED, refused })
    report.check('most of the quota is used', used >= LEAST_SHARE * WINDOWS * ALLOWED, `${used} calls`)
    report.check('few calls are refused', refused <= asked * MAX_REFUSED, `${refused} of ${asked}`)
  })
}
