// Redis cannot be used, is full, or loses its last writes.
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { eventually } from '../../helpers/eventually.js'
import { freePort } from '../../helpers/ports.js'
import { startRedis } from '../../helpers/redis-server.js'
import { type Play, pairs } from '../suite.js'
import { createGate, fine } from './calls.js'
import { logOut, signInAll } from './logins.js'
import type { Options, Stage } from './stage.js'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

interface Trouble {
  readonly name: string
  begin(stage: Stage): Promise<unknown>
  end(stage: Stage): Promise<unknown>
}

const disturb = (name: string, act: (proxy: TcpProxy) => void): Trouble => ({
  name,
  async begin({ redisProxies }) {
    for (const proxy of redisProxies) act(proxy)
  },
  async end({ redisProxies }) {
    for (const proxy of redisProxies) proxy.mend()
  }
})

const troubles: readonly Trouble[] = [
  { name: 'is down', begin: async ({ redis }) => redis?.kill(), end: async ({ redis }) => redis?.restart() },
  disturb('is silent, connections stay open', proxy => proxy.hold()),
  {
    name: 'is read-only',
    begin: async ({ redis }) => redis?.admin.replicaof('127.0.0.1', await freePort()),
    end: async ({ redis }) => redis?.admin.replicaof('NO', 'ONE')
  },
  disturb('responds after 300 ms', proxy => proxy.delay(300)),
  disturb('responds after 700 ms', proxy => proxy.delay(700))
]

// Longer than a request waits for Redis.
const BEFORE_MS = 6000
const ANSWER_MS = 300
const AFTER_MS = 2000

/** Redis cannot be used for longer than a request waits for it, and two processes get requests of each session. */
export function unusableRedis({ modes }: Options): Play[] {
  return pairs(modes, troubles, (mode, { name, begin, end }) =>
    trial({ failure: `Redis ${name}`, mode, logins: 10, hasRedisProxies: true }, async ({ stage, logins }) => {
      await begin(stage)
      await pause(BEFORE_MS)
      const gate = createGate()
      stage.provider.follow(gate.behaviour)
      const asked = [logins.askEach(0), logins.askEach(1)]
      await pause(ANSWER_MS)
      gate.open()
      await Promise.all(asked)
      await pause(AFTER_MS)
      await end(stage)
    })
  )
}

const LEAVING = 5
// The time in which a refresh lease, and then a refresh result, is exposed to eviction.
const EVICTED_MS = 500
const LATE_MS = 1000

/** Redis is full of another application's keys and evicts keys according to its policy. */
export function fullRedis({ modes, full }: Options): Play[] {
  const families = ['lru', 'lfu', 'random']
  const all = ['volatile', 'allkeys'].flatMap(keys => families.map(family => `${keys}-${family}`))
  const policies = ['noeviction', 'volatile-ttl', ...(full ? all : ['allkeys-lru'])]
  return pairs(modes, policies, (mode, policy) => {
    const redisArguments = ['--maxmemory-policy', policy]
    const options = { failure: `Redis is full, ${policy}`, mode, logins: 40, redisArguments }
    return trial(options, async ({ report, stage, logins, addToRow }) => {
      if (!stage.redis) throw new Error('This scenario needs Redis.')
      stage.provider.idp.settings.accessTokenLifetimeSeconds = 60
      const leaving = await signInAll(stage, mode, LEAVING)
      stage.provider.idp.settings.accessTokenLifetimeSeconds = 2
      const foreign = await fillRedis(stage.redis.admin)

      const browsers = leaving.all.map(({ browser }) => browser)
      const copies = await logOut(stage, leaving, browsers)
      const gate = createGate()
      stage.provider.follow(gate.behaviour)
      const oldTabs = logins.all.map(({ browser }) => browser.clone())
      const first = logins.askEach(0)
      await pause(EVICTED_MS)
      const second = Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
      await pause(EVICTED_MS)
      gate.open()
      await Promise.all([first, second])
      await pause(LATE_MS)
      await Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
      await copies.tryAll()
      const evicted = await foreign.evicted()
      await foreign.stop()

      const { letIn, tries } = copies.counts
      report.figures({ 'keys evicted': evicted, 'cookies of logged-out sessions tried': tries, 'let in': letIn })
      report.check('no copy of a logged-out session is accepted', letIn === 0, String(letIn))
      addToRow({ letIn, remark: `${tries} tries with logged-out sessions` })
    })
  })
}

const ROOM_BYTES = 2 * 1024 * 1024
const VALUE = 'x'.repeat(8000)
const KEYS_AT_A_TIME = 20
const EVERY_MS = 20
// Longer than the lifetime of any key of the servers, so `volatile-ttl` evicts the servers' keys first.
const LIFETIME_SECONDS = 100_000

/** Another application fills Redis and keeps writing until stop() is called. Resolves when Redis is full. */
async function fillRedis(redis: Redis) {
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', used + ROOM_BYTES)
  let count = 0
  let isFull = false
  let hasEnded = false

  async function write(): Promise<void> {
    const pipeline = redis.pipeline()
    for (let n = 0; n < KEYS_AT_A_TIME; n++) pipeline.set(`foreign:${count++}`, VALUE, 'EX', LIFETIME_SECONDS)
    const results = await pipeline.exec()
    isFull ||= (results ?? []).some(([error]) => error !== null) || (await evicted()) > 0
  }

  async function evicted(): Promise<number> {
    return Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))?.[1])
  }

  async function writeOn(): Promise<void> {
    while (!hasEnded) {
      await write()
      await pause(EVERY_MS)
    }
  }

  while (!isFull) await write()
  const writing = writeOn()
  return {
    evicted,
    /** Stops writing and removes the memory limit of Redis. */
    async stop() {
      hasEnded = true
      await writing
      await redis.config('SET', 'maxmemory', 0)
    }
  }
}

const REPLICATED_MS = 500
const APART_MS = 300

/**
 * The primary Redis dies, and a replica without the last writes is promoted. The process that made these writes
 * reconnects later than the other process, so it cannot repeat them immediately.
 */
export function promotion({ modes, full }: Options): Play[] {
  return pairs(modes, full ? [0, 200, 2000] : [200, 2000], (mode, absenceMs) => {
    const failure = `A Redis replica without the last writes is promoted, reachable after ${absenceMs} ms`
    const options = { failure, mode, logins: 30, hasRedisProxies: true, waitMs: 0 }
    return trial(options, async ({ scope, stage, logins }) => {
      const primary = stage.redis
      if (!primary) throw new Error('This scenario needs Redis.')
      const replication = await startTcpProxy(scope, primary.port)
      const replica = await startRedis(scope)
      await replica.admin.replicaof('127.0.0.1', replication.port)
      await eventually(async () => /master_link_status:up/.test(await replica.admin.info('replication')))
      await pause(2100)

      // A third of the sessions is refreshed before replication stops, a third afterwards, and a third is still being
      // refreshed when the primary dies.
      const browsers = logins.all.map(({ browser }) => browser)
      const oldTabs = browsers.map(browser => browser.clone())
      const third = browsers.length / 3
      const refresh = (group: number) =>
        Promise.all(browsers.slice(group * third, (group + 1) * third).map(browser => logins.ask(browser, 0)))
      await refresh(0)
      await pause(REPLICATED_MS)
      replication.hold()
      await refresh(1)
      const gate = createGate()
      stage.provider.follow(gate.behaviour)
      const last = refresh(2)
      await gate.arrived(third)
      stage.provider.follow(fine.answers)

      replication.cut()
      for (const proxy of stage.redisProxies) proxy.cut()
      await replica.admin.replicaof('NO', 'ONE')
      await primary.kill()
      const late = Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
      await pause(absenceMs)
      for (const proxy of [...stage.redisProxies].reverse()) {
        proxy.connectTo(replica.port)
        proxy.mend()
        await pause(APART_MS)
      }
      await pause(1000)
      gate.open()
      await Promise.all([last, late])
    })
  })
}
