/**
 * Measures what Redis does for one request, one refresh, one logout and one idle process, with 1 to 20 server processes.
 * `capacity/model.js` computes from these figures how many replicas and sessions one Redis can serve.
 */
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { HEADERS } from './get.js'
import { ANY_CORE, LOAD_CORE, SERVER_CORE, startProcess } from './processes.js'
import { redisProgram } from './redis-program.js'
import { usageOf } from './redis-usage.js'
import { startUnits } from './units.js'

const STEPS = [1, 2, 5, 10, 20]
const BROWSERS = 1000
const RATE = 200
const LOGOUT_RATE = 100
const LOGOUT_SECONDS = 3
// Of this many processes, each request and each refresh is also measured with `session.store: redis`.
const PROCESSES_WITH_STORE = 2
// A connection for messages sends a PING every 10 seconds.
const IDLE_SECONDS = 10
// Each browser comes back after 5 seconds (BROWSERS / RATE), when its tokens have expired.
const SHORT_LIFETIME_SECONDS = 1
const LIFETIME_SECONDS = 3599
const CALLS_PER_REFRESH = 2
const BUSY_CONNECTIONS = 100
// As with many replicas, each connection sends a command now and then.
const SPARSE_CONNECTIONS = 1000
const SPARSE_PAUSE_MS = 250
// By then Redis has deleted all expired records, and has measured the buffers of its connections again.
const UNTIL_STEADY_MS = 4000

/**
 * What one event costs.
 * @typedef {object} Cost
 * @property {number} commands
 * @property {number} scripts
 * @property {number} published messages that a process has sent to all others
 * @property {number} received bytes that Redis receives
 * @property {number} sent bytes that Redis sends
 * @property {number} redisMicros CPU time of Redis
 * @property {number} serverMicros CPU time of all server processes together
 * @property {number} calls of the token endpoint
 * @property {number} rate events a second that were reached
 * @property {number} p99 milliseconds
 *
 * @typedef {object} Step
 * @property {number} processes
 * @property {number} connections of one process
 * @property {{ commands: number, received: number, sent: number }} idle of one process in a second
 * @property {Cost} request
 * @property {Cost} refresh
 * @property {Cost} logout
 *
 * @typedef {object} Replicas
 * @property {Step[]} steps
 * @property {Pick<Step, 'processes' | 'request' | 'refresh'>} inRedis with `session.store: redis`
 * @property {Busy} busy
 * @property {BusyCost} [sparse] a request of one of many connections with little work
 *
 * @typedef {{ rate: number, redisMicros: number, busy: number }} BusyCost
 * @typedef {Record<'request' | 'requestOfStored' | 'refresh' | 'delivery', BusyCost> &
 *   { sessionBytes: number }} Busy
 */

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns {Promise<Replicas | undefined>} undefined if no Redis is installed
 */
export async function measureReplicas(around, { seconds }) {
  if (redisProgram === undefined) return undefined
  const steps = []
  for (const processes of STEPS) steps.push(await withUnits(processes, {}, around, measureStep))
  const store = { PLATFORM_AUTH_SESSION_STORE: 'redis' }
  const inRedis = await withUnits(PROCESSES_WITH_STORE, store, around, measureStore)
  return { steps, inRedis, busy: await measureBusyRedis(seconds), sparse: await measureSparseRedis(seconds) }

  /** Starts a Redis, servers and browsers for one measurement. */
  async function withUnits(processes, settings, around, measure) {
    const redis = startProcess('redis.js', ANY_CORE, [redisProgram])
    const browsers = startProcess('replicas-browsers.js', ANY_CORE)
    try {
      const REDIS_URL = await redis.ask('start')
      const admin = new Redis(REDIS_URL)
      const { units, secret, stop } = await startUnits(
        Array(processes).fill({ ...settings, REDIS_URL }),
        ANY_CORE,
        around
      )
      try {
        await browsers.ask('start', { urls: units.map(({ url }) => url), headers: HEADERS, secret })
        return await measure({ units, browsers, admin, provider: around.provider, seconds })
      } finally {
        await stop()
        admin.disconnect()
      }
    } finally {
      await Promise.all([redis.stop(), browsers.stop()])
    }
  }
}

/**
 * Measures a Redis that has as much work as it can do. Each command then costs less CPU time than at a low rate, because one
 * wake-up of Redis serves several connections.
 * @returns {Promise<Busy>}
 */
async function measureBusyRedis(seconds) {
  const redis = startProcess('redis.js', SERVER_CORE, [redisProgram])
  const clients = startProcess('redis-clients.js', LOAD_CORE)
  try {
    const url = await redis.ask('start')
    const admin = new Redis(url)
    await clients.ask('start', { url, connections: BUSY_CONNECTIONS })
    const memory = await measureMemory(clients, admin)
    const measure = run => costOfRun(admin, run)
    const results = {}
    for (const what of ['request', 'refresh', 'requestOfStored']) {
      await clients.ask('signIn')
      results[what] = await measure(() => clients.ask('run', { what, seconds }))
    }
    results.delivery = await measure(() => clients.ask('publish', seconds))
    admin.disconnect()
    return { ...results, ...memory }
  } finally {
    await Promise.all([redis.stop(), clients.stop()])
  }
}

/**
 * Measures a Redis whose commands arrive one by one on many connections, so that it wakes up for almost each of them.
 * @returns {Promise<BusyCost>}
 */
export async function measureSparseRedis(seconds) {
  const redis = startProcess('redis.js', SERVER_CORE, [redisProgram])
  const clients = startProcess('redis-clients.js', LOAD_CORE)
  try {
    const url = await redis.ask('start')
    const admin = new Redis(url)
    await clients.ask('start', { url, connections: SPARSE_CONNECTIONS })
    await clients.ask('signIn')
    const job = { what: 'request', seconds, pauseMs: SPARSE_PAUSE_MS }
    const cost = await costOfRun(admin, () => clients.ask('run', job))
    admin.disconnect()
    return cost
  } finally {
    await Promise.all([redis.stop(), clients.stop()])
  }
}

/** @returns {Promise<BusyCost>} */
async function costOfRun(admin, run) {
  const before = await usageOf(admin)
  const started = performance.now()
  const count = await run()
  const took = (performance.now() - started) / 1000
  const cpu = (await usageOf(admin)).cpuMicros - before.cpuMicros
  return { rate: count / took, redisMicros: cpu / count, busy: cpu / (took * 1e6) }
}

/** Measures the memory of Redis for a session. */
async function measureMemory(clients, admin) {
  const memory = async () => (await usageOf(admin)).memory
  await setTimeout(UNTIL_STEADY_MS)
  const before = await memory()
  const sessions = await clients.ask('signIn')
  await setTimeout(UNTIL_STEADY_MS)
  return { sessionBytes: ((await memory()) - before) / sessions }
}

async function measureStep(parts) {
  const { units, browsers, admin, seconds } = parts
  const processes = units.length
  await browsers.ask('signIn', BROWSERS)
  // After these requests, Redis knows that the browsers have their cookies.
  await browsers.ask('visitOnce')
  const idle = await costOfIdle(parts)
  // The connection of this measurement is not one of the servers.
  const connections = ((await usageOf(admin)).connections - 1) / processes
  const request = await costOf(parts, { what: 'request', rate: RATE, seconds })
  // A visit is a refresh and one request with the new cookie.
  const refresh = without(request, await costOf(parts, { what: 'refresh', rate: RATE, seconds }))
  if (Math.abs(refresh.calls - CALLS_PER_REFRESH) > 0.05) {
    throw new Error(`A refresh has made ${refresh.calls} token calls instead of ${CALLS_PER_REFRESH}.`)
  }
  const logout = await costOf(parts, { what: 'logout', rate: LOGOUT_RATE, seconds: LOGOUT_SECONDS })
  return { processes, connections, idle, request, refresh, logout }
}

async function measureStore(parts) {
  const { browsers, provider, seconds } = parts
  await browsers.ask('signIn', BROWSERS)
  const request = await costOf(parts, { what: 'request', rate: RATE, seconds })
  await browsers.ask('forget')
  await provider.ask('tokenLifetime', SHORT_LIFETIME_SECONDS)
  try {
    await browsers.ask('signIn', BROWSERS)
    // The tokens in Redis have expired when the browser comes back, so each request is a refresh.
    await setTimeout(SHORT_LIFETIME_SECONDS * 1000)
    const refresh = await costOf(parts, { what: 'request', rate: RATE, seconds })
    return { processes: parts.units.length, request, refresh }
  } finally {
    await provider.ask('tokenLifetime', LIFETIME_SECONDS)
  }
}

/**
 * Returns the average cost of one visit.
 * @returns {Promise<Cost>}
 */
async function costOf(parts, job) {
  const before = await read(parts)
  const { count, rate, p99 } = await parts.browsers.ask('run', job)
  const spent = since(before, await read(parts))
  return { ...Object.fromEntries(Object.entries(spent).map(([name, value]) => [name, value / count])), rate, p99 }
}

/** Returns what one process that gets no requests costs Redis in a second. */
async function costOfIdle(parts) {
  const before = await read(parts)
  await setTimeout(IDLE_SECONDS * 1000)
  const spent = since(before, await read(parts))
  const each = value => value / IDLE_SECONDS / parts.units.length
  return { commands: each(spent.commands), received: each(spent.received), sent: each(spent.sent) }
}

async function read({ units, admin, provider }) {
  const redis = await usageOf(admin)
  const usages = await Promise.all(units.map(({ process }) => process.ask('usage')))
  const serverMicros = usages.reduce((sum, usage) => sum + usage.cpuMicros, 0)
  return { redis, serverMicros, calls: await provider.ask('issued') }
}

/** Returns what has happened between two readings, without the bytes of the readings themselves. */
function since(before, after) {
  const change = name => after.redis[name] - before.redis[name]
  return {
    commands: change('commands'),
    scripts: change('scripts'),
    published: change('published'),
    received: change('received') - after.redis.ownReceived,
    sent: change('sent') - before.redis.ownSent,
    redisMicros: change('cpuMicros'),
    serverMicros: after.serverMicros - before.serverMicros,
    calls: after.calls - before.calls
  }
}

/** @returns {Cost} the cost of `visit` without that of `request` */
function without(request, visit) {
  const names = ['commands', 'scripts', 'published', 'received', 'sent', 'redisMicros', 'serverMicros', 'calls']
  return { ...visit, ...Object.fromEntries(names.map(name => [name, visit[name] - request[name]])) }
}
