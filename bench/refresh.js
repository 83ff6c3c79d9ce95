/** Compares the CPU time of a refresh in dual mode with that of its two provider calls and its four Redis scripts alone. */
import { randomBytes } from 'node:crypto'
import { HEADERS } from './get.js'
import { SERVER_CORE, startProcess } from './processes.js'
import { table } from './report.js'
import { SERVER } from './scenarios.js'
import { signIn } from './sessions.js'
import { TOKEN_PATH } from './settings.js'
import { inRounds } from './throughput.js'

const USERS = 1000
const SIGN_INS_AT_ONCE = 20
const CALLS_PER_REFRESH = 2
// On most machines, a core makes about this number of refreshes in a second.
const REFRESHES_PER_SECOND = 700

/** @type {import('./ratios.js').Measurement} */
export async function measureRefresh(around, options) {
  const calls = startProcess('refresh-calls.js', SERVER_CORE)
  const servers = []
  const ratios = {}
  let text = '\n## refresh: CPU time of a refresh in dual mode, compared with its calls and scripts alone\n'
  try {
    await calls.ask('start', around)
    for (const usesRedis of around.redis ? [false, true] : [false]) {
      const name = usesRedis ? 'two got calls and four scripts' : 'two got calls'
      const alone = counted(name, calls, around, job => calls.ask('run', { ...job, usesRedis }))
      const server = await startRefreshes(around, usesRedis)
      servers.push(server)
      const rows = await inRounds([alone, server], options)
      ratios[usesRedis ? 'refresh, with Redis' : 'refresh'] = 1 / rows[1].cpuRatio
      text += `\n${textOf(rows)}`
    }
    return { text, ratios }
  } finally {
    await Promise.all([calls, ...servers].map(process => process.stop()))
  }
}

/**
 * Starts a server whose users have signed in, and whose tokens have expired at each request.
 * @param {import('./lineup.js').Around} around
 * @param {boolean} usesRedis
 */
export async function startRefreshes(around, usesRedis) {
  const { load, providerUrl, wwwroot, redisUrl } = around
  const process = startProcess('serve.js', SERVER_CORE, [SERVER])
  try {
    const secret = randomBytes(32).toString('base64url')
    const settings = usesRedis ? { redis: { url: redisUrl } } : {}
    const origin = `http://127.0.0.1:${await process.ask('start', { secret, providerUrl, wwwroot, settings })}`
    let cookies = []
    while (cookies.length < USERS) {
      const some = Array.from({ length: SIGN_INS_AT_ONCE }, () => signIn(origin, secret))
      cookies.push(...(await Promise.all(some)))
    }
    const name = usesRedis ? `${SERVER}, with Redis` : SERVER
    const refreshes = counted(name, process, around, async job => {
      cookies = await load.ask('refreshEach', { url: origin + TOKEN_PATH, headers: HEADERS, cookies, secret, ...job })
    })
    return { ...refreshes, process, stop: () => process.stop() }
  } catch (error) {
    await process.stop()
    throw error
  }
}

/** Returns a candidate that makes refreshes. Throws an error if the provider did not get exactly two calls for each of them. */
function counted(name, process, { provider }, refresh) {
  return {
    name,
    async load({ seconds, connections }) {
      const amount = seconds * REFRESHES_PER_SECOND
      const [started, issued] = [performance.now(), await provider.ask('issued')]
      const before = await process.ask('usage')
      await refresh({ amount, connections })
      const cpuMicros = (await process.ask('usage')).cpuMicros - before.cpuMicros
      const took = (performance.now() - started) / 1000
      const calls = (await provider.ask('issued')) - issued
      if (calls !== CALLS_PER_REFRESH * amount) {
        throw new Error(`${name}: ${amount} refreshes had ${calls} provider calls.`)
      }
      return { rate: amount / took, cpuMicros: cpuMicros / amount, p99: 0, busy: cpuMicros / (took * 1e6) }
    }
  }
}

function textOf(rows) {
  const cells = rows.map(({ name, rate, cpuMicros, cpuRatio, busy }) => [
    name,
    Math.round(rate),
    Math.round(cpuMicros),
    (1 / cpuRatio).toFixed(2),
    `${Math.round(busy * 100)}%`
  ])
  return table(['', 'refreshes/s', 'CPU us/refresh', 'times the first line', 'core busy'], cells)
}
