/** Measures two server processes on one machine, and checks that both together refresh a session only once. */
import { TOKEN_PATH } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { ANY_CORE, startProcess } from './processes.js'
import { redisProgram } from './redis-program.js'
import { scenarios } from './scenarios.js'
import { createSession, createSessions, expired } from './sessions.js'
import { inTurn, summary, WARM_UP_SECONDS } from './throughput.js'
import { startUnits } from './units.js'

const PROCESSES = 2
const ASKING_AT_ONCE = 200
const CALLS_PER_REFRESH = 2

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns undefined if no Redis is installed
 */
export async function measureScale(around, options) {
  if (redisProgram === undefined) return undefined

  const redis = startProcess('redis.js', ANY_CORE, [redisProgram])
  // Each server has its own load generator, because a single one would reach its limit before two servers do.
  const loads = Array.from({ length: PROCESSES }, () => startProcess('load.js', ANY_CORE))
  try {
    const shared = { REDIS_URL: await redis.ask('start') }
    const { units, secret, stop } = await startUnits([{}, ...loads.map(() => shared)], ANY_CORE, around)
    try {
      const [lonely, ...sharing] = units
      const withoutRedis = [{ ...lonely, load: loads[0] }]
      const together = sharing.map((unit, index) => ({ ...unit, load: loads[index] }))
      const stranger = sharing.find(({ store }) => store !== 'redis')
      if (stranger) throw new Error(`A server with a Redis reports the store "${stranger.store}" instead of "redis".`)
      return await measureUnits({ withoutRedis, together }, secret, around, options)
    } finally {
      await stop()
    }
  } finally {
    await Promise.all([redis, ...loads].map(process => process.stop()))
  }
}

async function measureUnits({ withoutRedis, together }, secret, { provider }, { rounds, seconds, connections }) {
  const session = createSession(scenarios.token.sessionBytes)
  const { cookie } = createSessions(secret)
  const job = { headers: { ...HEADERS, cookie: cookie(session) }, connections, seconds }
  for (const member of [...withoutRedis, ...together]) {
    await seeRightAnswer(member.url, job.headers, session)
    await loadTogether([member], { ...job, seconds: WARM_UP_SECONDS })
  }
  const cases = [together.slice(0, 1), together, withoutRedis]

  const results = new Map(cases.map(members => [members, []]))
  for (let round = 0; round < rounds; round++) {
    for (const members of inTurn(cases, round)) results.get(members).push(await loadTogether(members, job))
  }
  for (let round = 0; round < rounds; round++) {
    await checkSingleRefresh(together, provider, cookie(expired(session)))
  }

  const [one, all, without] = cases.map(members => results.get(members))
  const sums = results => results.map(({ sum }) => sum)
  const row = (name, results) => summary(name, results, sums(one))
  return {
    cookieBytes: job.headers.cookie.length,
    askingAtOnce: ASKING_AT_ONCE,
    providerCalls: CALLS_PER_REFRESH,
    rows: [
      row('1 process', sums(one)),
      row(`${PROCESSES} processes, together`, sums(all)),
      ...together.map((_, index) =>
        row(
          `${PROCESSES} processes, number ${index + 1}`,
          all.map(({ each }) => each[index])
        )
      ),
      row('1 process without Redis', sums(without))
    ]
  }
}

/** Sends requests to all servers at the same time. The connections are divided between the servers, as a proxy would do. */
async function loadTogether(members, { headers, connections, seconds }) {
  const share = Math.ceil(connections / members.length)
  const each = await Promise.all(
    members.map(async ({ process, url, load }) => {
      const job = { url: url + TOKEN_PATH, headers, status: scenarios.token.status, connections: share, seconds }
      const before = await process.ask('usage')
      const { requests, seconds: took, p99 } = await load.ask('run', job)
      const cpu = (await process.ask('usage')).cpuMicros - before.cpuMicros
      return { rate: requests / took, cpuMicros: cpu / requests, p99, busy: cpu / (took * 1e6) }
    })
  )
  const total = pick => each.reduce((sum, result) => sum + pick(result), 0)
  const rate = total(result => result.rate)
  const sum = {
    rate,
    cpuMicros: total(result => result.cpuMicros * result.rate) / rate,
    p99: Math.max(...each.map(({ p99 }) => p99)),
    busy: total(result => result.busy)
  }
  return { sum, each }
}

async function seeRightAnswer(url, headers, session) {
  const answer = await get({ url: url + TOKEN_PATH, headers })
  if (answer.status !== scenarios.token.status || !scenarios.token.isRight({ ...answer, session })) {
    throw new Error(`A server process answered with ${answer.status} ${answer.body.slice(0, 200)}`)
  }
}

/** Sends many simultaneous requests with the same expired session, spread over the servers. */
async function checkSingleRefresh(units, provider, cookie) {
  const before = await provider.ask('issued')
  const answers = await Promise.all(
    Array.from({ length: ASKING_AT_ONCE }, (_, index) =>
      get({ url: units[index % units.length].url + TOKEN_PATH, headers: { ...HEADERS, cookie } })
    )
  )
  const calls = (await provider.ask('issued')) - before
  const refused = answers.filter(({ status }) => status !== 200).length
  if (refused > 0 || calls !== CALLS_PER_REFRESH) {
    throw new Error(
      `${ASKING_AT_ONCE} simultaneous requests with one expired session caused ${calls} provider calls instead of ${CALLS_PER_REFRESH}, and ${refused} responses other than 200.`
    )
  }
}
