/** Measures one scenario. Its candidates take turns in several rounds. */
import { startCandidates } from './lineup.js'
import { median, table } from './report.js'
import { SERVER, scenarios } from './scenarios.js'

const WARM_UP_SECONDS = 3

/**
 * @param {string} scenarioName
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 * @returns {Promise<import('./ratios.js').Measured>}
 */
export async function measureThroughput(scenarioName, around, { peers, ...options }) {
  const scenario = scenarios[scenarioName]
  if (scenario.usesRedis && !around.redis)
    return { text: `\n## ${scenarioName}: skipped, because no Redis is installed\n` }
  const installed = (scenario.peers ?? []).filter(({ name }) => peers && !around.skipped.has(name))
  const { candidates, cookieBytes, stop } = await startCandidates(
    scenario,
    [...scenario.entrants, ...installed],
    around
  )
  try {
    const rows = await inRounds(candidates, options)
    const ours = rows.find(({ name }) => name === SERVER) ?? rows.at(-1)
    return { text: textOf(scenarioName, scenario, rows, cookieBytes), ratios: { [scenarioName]: 1 / ours.cpuRatio } }
  } finally {
    await stop()
  }
}

/**
 * Measures candidates in turn, and compares each with the first one in the same round.
 * @param {{ name: string, load: (job: object) => Promise<object> }[]} candidates
 * @param {{ rounds: number, seconds: number, connections: number }} options
 */
export async function inRounds(candidates, { rounds, seconds, connections }) {
  for (const { load } of candidates) await load({ connections, seconds: WARM_UP_SECONDS })
  const readings = new Map(candidates.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    // Each candidate is the first one in some rounds, because the processor is cooler after a pause.
    const first = round % candidates.length
    for (const { name, load } of [...candidates.slice(first), ...candidates.slice(0, first)]) {
      readings.get(name).push(await load({ connections, seconds }))
    }
  }
  const references = readings.get(candidates[0].name)
  return candidates.map(({ name }) => summary(name, readings.get(name), references))
}

/** The medians of a candidate. Each ratio compares it with the first candidate in the same round. */
function summary(name, readings, references) {
  const medianOf = pick => median(readings.map((reading, round) => pick(reading, references[round])))
  return {
    name,
    rate: medianOf(({ rate }) => rate),
    rateRatio: medianOf(({ rate }, reference) => rate / reference.rate),
    cpuMicros: medianOf(({ cpuMicros }) => cpuMicros),
    cpuRatio: medianOf(({ cpuMicros }, reference) => reference.cpuMicros / cpuMicros),
    ...('redisMicros' in readings[0] && { redisMicros: medianOf(({ redisMicros }) => redisMicros) }),
    p99: medianOf(({ p99 }) => p99),
    busy: medianOf(({ busy }) => busy)
  }
}

function textOf(name, { path, title, usesRedis }, rows, cookieBytes) {
  const redisHead = usesRedis ? ['Redis us/req'] : []
  const head = ['', 'req/s', 'ratio', 'CPU us/req', 'ratio', ...redisHead, 'p99 ms', 'core busy']
  const cells = rows.map(({ name, rate, rateRatio, cpuMicros, cpuRatio, redisMicros, p99, busy }) => [
    name,
    Math.round(rate),
    rateRatio.toFixed(2),
    cpuMicros.toFixed(1),
    cpuRatio.toFixed(2),
    ...(usesRedis ? [redisMicros.toFixed(1)] : []),
    p99,
    `${Math.round(busy * 100)}%`
  ])
  return `\n## ${name}: \`GET ${path}\`, ${title}, cookies of ${cookieBytes} bytes\n\n${table(head, cells)}`
}
