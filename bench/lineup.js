/** Starts the candidates of a scenario, each in its own process on the same core, and checks that each responds correctly. */
import { randomBytes } from 'node:crypto'
import { get, HEADERS } from './get.js'
import { SERVER_CORE, startProcess, unpinned } from './processes.js'
import { SESSION_BYTES } from './scenarios.js'
import { createSession } from './sessions.js'

const SESSIONS_IN_TURN = 10_000

/**
 * What all measurements share: the processes `load`, `provider` and `redis`, their URLs, and the folder `wwwroot`.
 * @typedef {object} Around
 * @property {ReturnType<typeof startProcess>} [redis] undefined if no Redis is installed
 * @property {string} [redisUrl]
 * @property {Map<string, string>} skipped the peers that cannot be measured here, with the reason
 */

/**
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {import('./scenarios.js').Entrant[]} entrants
 * @param {Around} around
 */
export async function startCandidates(scenario, entrants, around) {
  const { providerUrl, wwwroot, redisUrl } = around
  const shared = { secret: randomBytes(32).toString('base64url'), session: createSession(SESSION_BYTES) }
  const processes = []
  try {
    const candidates = []
    for (const { name, file, settings } of entrants) {
      const process = startProcess('serve.js', SERVER_CORE, [file])
      processes.push(process)
      const bench = {
        ...shared,
        providerUrl,
        wwwroot,
        settings: { ...settings, ...(scenario.usesRedis && { redis: { url: redisUrl } }) }
      }
      const port = await process.ask('start', bench)
      candidates.push({ name, process, port, cookie: await process.ask('cookie', shared.session) })
    }
    const cookieBytes = Math.max(...candidates.map(({ cookie }) => cookie.length))
    const pad = cookie => (scenario.usesRedis ? cookie : padded(cookie, cookieBytes))
    const prepared = candidates.map(one => prepare(scenario, { ...one, ...shared, cookie: pad(one.cookie) }, around))
    return { cookieBytes, stop, candidates: await Promise.all(prepared) }
  } catch (error) {
    await stop()
    throw error
  }

  function stop() {
    return Promise.all(processes.map(process => process.stop()))
  }
}

/** Checks that the candidate gives a correct response, and returns the candidate with a function that measures it. */
async function prepare(scenario, { name, process, port, cookie, secret, session }, { load: generator, redis }) {
  const { path, statuses, hasManySessions, usesOnlyServer, usesRedis, isRight } = scenario
  const status = statuses?.[name] ?? 200
  const url = `http://127.0.0.1:${port}${path}`
  const headers = { ...HEADERS, cookie }
  const answer = await get({ url, headers })
  if (answer.status !== status || !isRight(answer)) {
    throw new Error(`${name} answered ${path} with ${answer.status} ${answer.body.slice(0, 200)}`)
  }
  // On a core that it shares, a busy load generator would slow down the server.
  const shared = { url, headers, status, neverSleeps: usesOnlyServer === true && !unpinned }
  const many = hasManySessions && { many: { secret, session, count: SESSIONS_IN_TURN } }
  const redisMicros = async () => (usesRedis ? (await redis.ask('usage')).cpuMicros : 0)

  return {
    name,
    process,
    // For measurements that send their requests themselves.
    request: { url, headers },
    many: { secret, session },
    /**
     * The CPU times are those of one request. `busy` is the used share of the core.
     * @param {{ connections: number, seconds?: number, amount?: number }} job
     */
    async load(job) {
      const [before, redisBefore] = [await process.ask('usage'), await redisMicros()]
      const { requests, seconds, p99 } = await generator.ask('run', { ...shared, ...many, ...job })
      const cpuMicros = (await process.ask('usage')).cpuMicros - before.cpuMicros
      return {
        rate: requests / seconds,
        cpuMicros: cpuMicros / requests,
        ...(usesRedis && { redisMicros: ((await redisMicros()) - redisBefore) / requests }),
        p99,
        busy: cpuMicros / (seconds * 1e6)
      }
    }
  }
}

function padded(cookie, bytes) {
  const missing = bytes - cookie.length
  return missing > 6 ? `${cookie}; pad=${'x'.repeat(missing - 6)}` : cookie
}
