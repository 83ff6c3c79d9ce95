/**
 * Compares sessions in cookies with sessions in Redis (`session.store: redis`): the size of the `Cookie` header, the CPU time of
 * the server, and the CPU time and the bytes of Redis for one request.
 */
import { Redis } from 'ioredis'
import { TOKEN_PATH } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { LOAD_CORE, SERVER_CORE, startProcess } from './processes.js'
import { redisProgram } from './redis-program.js'
import { usageOf } from './redis-usage.js'
import { scenarios } from './scenarios.js'
import { signIn } from './sign-in.js'
import { inTurn, summary, WARM_UP_SECONDS } from './throughput.js'
import { startUnits } from './units.js'

const SMALL_TOKEN = 900
// Two tokens of this length do not fit into cookies.
const LARGE_TOKEN = 100_000

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns undefined if no Redis is installed
 */
export async function measureSessionStore(around, options) {
  if (redisProgram === undefined) return undefined
  const redis = startProcess('redis.js', LOAD_CORE, [redisProgram])
  try {
    const REDIS_URL = await redis.ask('start')
    const admin = new Redis(REDIS_URL)
    const stores = [{ REDIS_URL }, { REDIS_URL, PLATFORM_AUTH_SESSION_STORE: 'redis' }]
    const { units, secret, stop } = await startUnits(stores, SERVER_CORE, around)
    try {
      const [cookie, inRedis] = units
      const cases = [
        await prepare('cookie, tokens of 0.9 kB', cookie, SMALL_TOKEN, { secret, around, admin }),
        await prepare('redis, tokens of 0.9 kB', inRedis, SMALL_TOKEN, { secret, around, admin }),
        await prepare('redis, tokens of 100 kB', inRedis, LARGE_TOKEN, { secret, around, admin })
      ]
      return await measureCases(cases, options)
    } finally {
      await stop()
      admin.disconnect()
    }
  } finally {
    await Promise.all([redis.stop(), around.provider.ask('tokenLength', SMALL_TOKEN)])
  }
}

async function measureCases(cases, { rounds, seconds, connections }) {
  const results = new Map(cases.map(one => [one, []]))
  for (const one of cases) await one.load({ connections, seconds: WARM_UP_SECONDS })
  for (let round = 0; round < rounds; round++) {
    for (const one of inTurn(cases, round)) results.get(one).push(await one.load({ connections, seconds }))
  }
  const [reference] = cases
  return cases.map(one => {
    const { received, sent, redisMicros } = results.get(one).at(-1)
    const row = summary(one.name, results.get(one), results.get(reference))
    return { ...row, cookieBytes: one.cookieBytes, received, sent, redisMicros }
  })
}

/** Signs in at a server whose provider issues tokens of this length. Returns a function that measures requests. */
async function prepare(name, { url, process }, tokenLength, { secret, around, admin }) {
  await around.provider.ask('tokenLength', tokenLength)
  const cookie = await signIn(url, secret)
  const headers = { ...HEADERS, cookie }
  const answer = await get({ url: url + TOKEN_PATH, headers })
  if (answer.status !== 200 || JSON.parse(answer.body).access_token.length !== tokenLength) {
    throw new Error(`${name}: the server answered ${TOKEN_PATH} with ${answer.status} ${answer.body.slice(0, 200)}`)
  }
  return {
    name,
    cookieBytes: `Cookie: ${cookie}\r\n`.length,
    async load({ connections, seconds }) {
      const job = { url: url + TOKEN_PATH, headers, status: scenarios.token.status, connections, seconds }
      const [before, redisBefore] = [await process.ask('usage'), await usageOf(admin)]
      const { requests, seconds: took, p99 } = await around.load.ask('run', job)
      const [after, redisAfter] = [await process.ask('usage'), await usageOf(admin)]
      const cpu = after.cpuMicros - before.cpuMicros
      const perRequest = member => (redisAfter[member] - redisBefore[member]) / requests
      return {
        rate: requests / took,
        cpuMicros: cpu / requests,
        p99,
        busy: cpu / (took * 1e6),
        received: perRequest('received'),
        sent: perRequest('sent'),
        redisMicros: perRequest('cpuMicros')
      }
    }
  }
}
