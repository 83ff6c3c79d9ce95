/** Compares the CPU time of a dual refresh with that of its two provider calls and its four Redis scripts alone. */
import { spawnSync } from 'node:child_process'
import { TOKEN_PATH } from './candidates/common.js'
import { HEADERS } from './get.js'
import { LOAD_CORE, SERVER_CORE, startProcess } from './processes.js'
import { createSession } from './sessions.js'
import { inTurn, summary } from './throughput.js'
import { startUnits } from './units.js'

const SESSIONS = 1000
const SESSION_BYTES = 2000
const CALLS_PER_REFRESH = 2
const NEVER = 0
// On most machines, a core makes about this number of refreshes in a second.
export const REFRESHES_PER_SECOND = 800
const WARM_UP_REFRESHES = 3000

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns undefined if no Redis is installed
 */
export async function measureRefreshCost(around, options) {
  const started = await startRefreshes(around, options)
  if (!started) return undefined
  try {
    return await measureCases(started.cases, options)
  } finally {
    await started.stop()
  }
}

/**
 * Starts everything that refreshes. Each case has its process, and a function that makes refreshes.
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns undefined if no Redis is installed
 */
export async function startRefreshes(around, options) {
  const redisProgram = ['redis-server', 'valkey-server'].find(name => !spawnSync(name, ['--version']).error)
  if (redisProgram === undefined) return undefined
  const processes = [startProcess('redis.js', LOAD_CORE, [redisProgram]), startProcess('refresh-calls.js', SERVER_CORE)]
  const [redis, calls] = processes
  const stop = () => Promise.all(processes.map(process => process.stop()))
  try {
    const REDIS_URL = await redis.ask('start')
    const servers = await startUnits([{ REDIS_URL }, {}], SERVER_CORE, around)
    const { secret } = servers
    processes.push(servers)
    const koaUrl = await calls.ask('start', { providerUrl: around.providerUrl, redisUrl: REDIS_URL, secret })

    async function crowd(process, url, signsIn) {
      const browsers = startProcess('browsers.js', LOAD_CORE)
      processes.push(browsers)
      await browsers.ask('start', crowdAt(url, secret, signsIn, options))
      return {
        process,
        load: (amount, expiredEvery = 1) => sendRequests(browsers, { requests: amount, expiredEvery }, around)
      }
    }
    const alone = withRedis => ({
      process: calls,
      load: amount => calls.ask('run', { amount, connections: options.connections, withRedis })
    })
    const [withRedis, inMemory] = servers.units
    const server = await crowd(withRedis.process, withRedis.url, true)
    const cases = {
      parts: alone(true),
      koa: await crowd(calls, koaUrl, false),
      server,
      active: { ...server, load: amount => server.load(amount, NEVER) },
      calls: alone(false),
      serverInMemory: await crowd(inMemory.process, inMemory.url, true)
    }
    return { cases, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function crowdAt(origin, secret, signsIn, { connections }) {
  return {
    origin,
    path: TOKEN_PATH,
    headers: HEADERS,
    secret,
    session: createSession(SESSION_BYTES),
    sessions: SESSIONS,
    signsIn,
    connections
  }
}

async function sendRequests(browsers, crowdRun, { provider }) {
  const before = await provider.ask('issued')
  const { statuses, refreshes } = await browsers.ask('run', crowdRun)
  const calls = (await provider.ask('issued')) - before
  if (statuses[200] !== crowdRun.requests || calls !== CALLS_PER_REFRESH * refreshes) {
    const counts = JSON.stringify(statuses)
    throw new Error(`refresh-cost: Responses by status: ${counts}. ${refreshes} refreshes had ${calls} provider calls.`)
  }
}

async function measureCases(cases, { rounds, seconds }) {
  const names = Object.keys(cases)
  const results = Object.fromEntries(names.map(name => [name, []]))
  for (const { load } of Object.values(cases)) await load(WARM_UP_REFRESHES)
  for (let round = 0; round < rounds; round++) {
    for (const name of inTurn(names, round)) {
      results[name].push(await measureCase(cases[name], seconds * REFRESHES_PER_SECOND))
    }
  }
  const row = (name, reference) => summary(name, results[name], results[reference])
  return {
    withRedis: ['parts', 'koa', 'server', 'active'].map(name => row(name, 'parts')),
    inMemory: ['calls', 'serverInMemory'].map(name => row(name, 'calls'))
  }
}

async function measureCase({ process, load }, amount) {
  const started = performance.now()
  const before = await process.ask('usage')
  await load(amount)
  const cpuMicros = (await process.ask('usage')).cpuMicros - before.cpuMicros
  const took = (performance.now() - started) / 1000
  return { rate: amount / took, cpuMicros: cpuMicros / amount, p99: 0, busy: cpuMicros / (took * 1e6) }
}
