// Simulates many replicas that restore their sessions after Redis has restarted without data. Each replica runs the production
// code of the store: rules, connection, cells, encryption and pacing. Only Redis and the clock are simulated.
import { createKeyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/record.js'
import type { Message } from '#src/sessions/cells.js'
import { channelOf, createStores, ignoreUnavailable, prefixOf, type Stores } from '#src/sessions/index.js'
import { createMessageSeal } from '#src/sessions/redis/redis-cells.js'
import type { RedisClient, RedisCommands, RedisEvents } from '#src/sessions/redis/redis-client.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'
import { createWorld, type World } from './world.js'

interface RestoreOptions {
  readonly replicas: number
  /** The number of sessions that were used in the last minute. */
  readonly sessions: number
  /** The number of replicas that remember each session. */
  readonly copies: number
}

interface RestoreResult {
  /** The seconds from the start of Redis until half of the sessions, and all sessions, were in Redis again. */
  readonly halfSeconds: number
  readonly allSeconds: number
  /** The seconds until every replica could use Redis for good. */
  readonly availableSeconds: number
  /** The numbers of commands until all sessions were restored. */
  readonly reads: number
  readonly scripts: number
  /** The largest number of scripts and reads that Redis ran in a second. */
  readonly busiestSecond: number
  /** How often a replica has found Redis unavailable after its start. */
  readonly outages: number
  /** The sessions that no replica has restored. */
  readonly lost: number
}

// The CPU times of Redis 7 in milliseconds: the read of a session, the script with a record of 3 kB, and the delivery of a
// message to one connection (docs/run/capacity.md).
const READ_MS = 0.026
const SCRIPT_MS = 0.06
const DELIVERY_MS = 0.0074
const LATENCY_MS = 0.5
const DOWN_MS = 5000
const LONGEST_MS = 600_000
const silent = { info() {}, warn() {}, error() {} }

export async function simulateRestore({ replicas, sessions, copies }: RestoreOptions): Promise<RestoreResult> {
  const world = createWorld(1)
  let outages = 0
  const log = {
    ...silent,
    warn: ({ event }: { event: string }) => void (redis.isUp && event === 'redis_unavailable' && outages++)
  }
  const config = testConfig(unreachableIdp, { redis: { url: 'redis://localhost' } })
  const keyring = createKeyring(['the secret of the simulated replicas'])
  const messages = createMessageSeal(keyring.sealer('message'), channelOf(prefixOf(config)), world.now)
  const knownBy = new Map<string, number[]>()
  const redis = createRedis(world, { openMessage: messages.open, knownBy })
  const stores: Stores[] = []
  for (let index = 0; index < replicas; index++) {
    const { clock } = world.createProcess(`replica ${index}`)
    const open = async (_: unknown, events: RedisEvents) => redis.connect(events)
    stores.push(createStores(config, { keyring, clock, log: log as never, open }))
  }
  await world.run(1000)
  redis.stop()
  for (let number = 0; number < sessions; number++) {
    const record = recordOf(number)
    const indexes = Array.from({ length: copies }, () => Math.floor(world.random() * replicas))
    knownBy.set(record.id, indexes)
    for (const index of indexes) stores[index]?.sessions.current(record).catch(ignoreUnavailable)
  }
  await world.run(DOWN_MS)
  const startedAt = world.now()
  const secondsSince = () => (world.now() - startedAt) / 1000
  redis.start()
  let halfSeconds = Number.NaN
  let availableSeconds = 0
  const isDone = () => redis.stored() >= sessions && stores.every(({ status }) => status() === 'up')
  while (!isDone() && world.now() - startedAt < LONGEST_MS) {
    await world.run(100)
    if (Number.isNaN(halfSeconds) && redis.stored() >= sessions / 2) halfSeconds = secondsSince()
    if (!stores.every(({ status }) => status() === 'up')) availableSeconds = secondsSince()
  }
  const { reads, scripts, busiestSecond, lastStoredAt } = redis.counts()
  const lost = sessions - redis.stored()
  for (const { close } of stores) void close()
  await world.run(5000)
  const allSeconds = (lastStoredAt - startedAt) / 1000
  return { halfSeconds, allSeconds, availableSeconds, reads, scripts, busiestSecond, outages, lost }
}

function recordOf(number: number): SessionRecord {
  const fields = { token: 't'.repeat(2000), refresh_token: `refresh ${number}`, expires_at: 0 }
  return { kind: 'complete', id: `session-${number}`, rev: 1, loggedInAt: 0, issuedAt: 0, fields }
}

interface Audience {
  readonly openMessage: (text: string) => Message | undefined
  /** The numbers of the replicas that remember each session. */
  readonly knownBy: ReadonlyMap<string, readonly number[]>
}

/** A Redis with one thread: commands wait until those before them have ended. */
function createRedis(world: World, audience: Audience) {
  const cells = new Map<string, { entry: string; record?: string }>()
  const clients = new Set<RedisEvents>()
  let isUp = true
  const queue: (() => void)[] = []
  let first = 0
  let isThrottled = false
  let reads = 0
  let scripts = 0
  let lastStoredAt = 0
  const perSecond = new Map<number, number>()

  /** Runs a command after all commands that have arrived before. Its work returns the reply and the time of Redis that it takes. */
  function run(work: () => readonly [reply: unknown, costMs: number]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const lose = () => reject(Object.assign(new Error('connection lost'), { code: 'ECONNREFUSED' }))
      const job = () => {
        const second = Math.floor(world.now() / 1000)
        perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
        const [reply, costMs] = work()
        world.after(costMs, () => {
          world.after(LATENCY_MS, () => resolve(reply))
          isThrottled = false
          next()
        })
      }
      world.after(LATENCY_MS, () => {
        if (!isUp) return lose()
        queue.push(job)
        next()
      })
    })
  }

  function next(): void {
    if (isThrottled || first === queue.length) return
    isThrottled = true
    queue[first++]?.()
  }

  // Every client gets each message, but only those that know the session do anything with it. The others cost only time of Redis.
  function deliver(channel: string, text: string): void {
    const { openMessage, knownBy } = audience
    const message = openMessage(text)
    const ids = message && message.kind !== 'pause' ? (knownBy.get(message.id) ?? []) : []
    const all = [...clients]
    for (const index of ids) all[index]?.onMessage(channel, text)
  }

  function swap(name: string, args: readonly (string | number)[]): readonly [reply: unknown, costMs: number] {
    const [expected, entry, change, record, , now, channel, message] = args
    scripts++
    const cell = cells.get(name)
    const isInTime = Math.abs(Number(now) - world.now()) <= 2000
    if ((cell?.entry ?? '') !== expected || !isInTime) return [[0, world.now(), cell?.entry], SCRIPT_MS]
    const kept = change === 'keep' ? cell?.record : change === 'set' ? String(record) : undefined
    if (!name.includes('probe')) {
      if (!cell) lastStoredAt = world.now()
      cells.set(name, { entry: String(entry), ...(kept !== undefined && { record: kept }) })
    }
    if (message !== '') deliver(String(channel), String(message))
    return [[1, world.now()], SCRIPT_MS + (message === '' ? 0 : DELIVERY_MS * clients.size)]
  }

  const read = (reply: () => unknown) => {
    reads++
    return run(() => [reply(), READ_MS])
  }
  const commands = {
    evalsha: (_digest: string, _keys: number, name: string, ...args: (string | number)[]) =>
      run(() => swap(name, args)),
    hget: (name: string) => read(() => cells.get(name)?.entry ?? null),
    hmget: (name: string) => read(() => [cells.get(name)?.entry ?? null, cells.get(name)?.record ?? null]),
    publish: () => run(() => [clients.size, SCRIPT_MS + DELIVERY_MS * clients.size])
  } as unknown as RedisCommands

  return {
    connect(events: RedisEvents): RedisClient {
      clients.add(events)
      world.after(LATENCY_MS, events.onReady)
      return { commands, reconnect: async () => {}, close: async () => void clients.delete(events) }
    },
    get isUp() {
      return isUp
    },
    stop(): void {
      isUp = false
      for (const { onLost } of clients) onLost()
    },
    /** Starts Redis without data. The clients connect within half a second. */
    start(): void {
      isUp = true
      reads = scripts = 0
      for (const { onReady } of clients) world.after(world.between(0, 550), onReady)
    },
    stored: () => cells.size,
    counts: () => ({ reads, scripts, busiestSecond: Math.max(0, ...perSecond.values()), lastStoredAt })
  }
}
