/** Starts the candidates of a scenario, each in its own process on the same core, and checks that each responds correctly. */
import { randomBytes } from 'node:crypto'
import { get, HEADERS } from './get.js'
import { SERVER_CORE, startProcess, unpinned } from './processes.js'
import { SERVER } from './scenarios.js'
import { createSession, createSessions, expired } from './sessions.js'
import { hasWrk } from './wrk.js'

const SESSIONS_IN_TURN = 10_000

/**
 * The program that sends the requests of a scenario.
 * @param {import('./scenarios.js').Scenario} scenario
 * @returns {'autocannon' | 'wrk'}
 */
export function toolOf({ isForWrk }) {
  return isForWrk && hasWrk ? 'wrk' : 'autocannon'
}

/**
 * The processes and folders that all measurements share.
 * @typedef {object} Around
 * @property {ReturnType<typeof startProcess>} load
 * @property {ReturnType<typeof startProcess>} provider
 * @property {string} providerUrl
 * @property {string} wwwroot
 * @property {Map<string, string>} skipped the peers that cannot be measured here, with the reason
 */

/**
 * Returns the names of the candidates that take part in a scenario.
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {Around} around
 * @param {import('./options.js').Options} options
 */
export function candidatesOf({ candidates, peers = [] }, { skipped }, options) {
  return options.peers ? [...candidates, ...peers.filter(name => !skipped.has(name))] : candidates
}

/**
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {string[]} names
 * @param {Around} around
 */
export async function startCandidates(scenario, names, { providerUrl, wwwroot }) {
  const secret = randomBytes(32).toString('base64url')
  const session = createSession(scenario.sessionBytes ?? 2000)
  const processes = new Map(names.map(name => [name, startProcess('serve.js', SERVER_CORE, [name])]))
  const stop = () => Promise.all([...processes.values()].map(process => process.stop()))
  try {
    const candidates = []
    for (const [name, process] of processes) {
      const port = await process.ask('start', { secret, providerUrl, wwwroot, session })
      const sent = scenario.isExpired ? expired(session) : session
      const cookie = scenario.sessionBytes ? await process.ask('cookie', sent) : ''
      candidates.push({ name, process, port, cookie })
    }
    const cookieBytes = Math.max(...candidates.map(({ cookie }) => cookie.length))
    return {
      cookieBytes,
      stop,
      candidates: await Promise.all(
        candidates.map(({ cookie, ...candidate }) =>
          prepare(scenario, { ...candidate, cookie: padded(cookie, cookieBytes), secret, session })
        )
      )
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Checks that the candidate gives a correct response, and returns the candidate with a function that measures it. */
async function prepare(scenario, { name, process, port, cookie, secret, session }) {
  const { path, statuses, fresh, isRight, usesOnlyServer } = scenario
  const status = statuses?.[name] ?? scenario.status
  const tool = toolOf(scenario)
  // On a core that it shares, a busy load generator would slow down the server.
  const neverSleeps = usesOnlyServer === true && !unpinned
  const isServer = name === SERVER
  // Only this server rejects a repeated login and a repeated expired session, so only this server needs new ones.
  const freshFor = fresh === 'many' || isServer ? fresh : undefined
  const headers = cookie ? { ...HEADERS, cookie } : HEADERS
  let url = `http://127.0.0.1:${port}${path}`
  let probe = { url, headers }
  if (fresh === 'callback') {
    const callback = createSessions(secret).callback()
    probe = { url: url + callback.query, headers: { ...HEADERS, cookie: callback.cookie } }
    if (!isServer) url = probe.url
  }
  const answer = await get(probe)
  if (answer.status !== status || !isRight({ ...answer, session })) {
    throw new Error(`${name} answered ${path} with ${answer.status} ${answer.body.slice(0, 200)}`)
  }

  return {
    name,
    process,
    async load({ load, connections, seconds, amount }) {
      const job = { url, headers, status, connections, seconds, amount, tool, neverSleeps }
      if (freshFor) job.fresh = { what: freshFor, secret, session, count: SESSIONS_IN_TURN }
      const before = await process.ask('usage')
      const { requests, seconds: took, p99 } = await load.ask('run', job)
      const cpuMicros = (await process.ask('usage')).cpuMicros - before.cpuMicros
      return { rate: requests / took, cpuMicros: cpuMicros / requests, p99, busy: cpuMicros / (took * 1e6) }
    }
  }
}

function padded(cookie, bytes) {
  const missing = bytes - cookie.length
  return missing > 6 ? `${cookie}; pad=${'x'.repeat(missing - 6)}` : cookie
}
