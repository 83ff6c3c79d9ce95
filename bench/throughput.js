/** One scenario: its candidates loaded in turn, several rounds. */
import { startCandidates } from './lineup.js'
import { median } from './report.js'

export const WARM_UP_SECONDS = 1

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {number} rate requests a second
 * @property {number} rateRatio to the first candidate in the same round
 * @property {number} cpuMicros of the server's process, for one request
 * @property {number} cpuRatio the first candidate's to this one's
 * @property {number} p99 milliseconds
 * @property {number} busy how much of the core's time it took: below 0.9 the load was the limit, and CPU time tells more
 */

/**
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function measureThroughput(scenario, around, { rounds, seconds, connections, peers }) {
  const names = [...scenario.candidates, ...(peers ? (scenario.peers ?? []) : [])]
  const { candidates, cookieBytes, stop } = await startCandidates(scenario, names, around)
  try {
    const job = { ...around, connections, seconds }
    for (const candidate of candidates) await candidate.load({ ...job, seconds: WARM_UP_SECONDS })
    const results = Object.fromEntries(names.map(name => [name, []]))
    for (let round = 0; round < rounds; round++) {
      for (const candidate of inTurn(candidates, round)) {
        results[candidate.name].push(await candidate.load(job))
      }
    }
    return { rows: names.map(name => summary(name, results[name], results[names[0]])), cookieBytes }
  } finally {
    await stop()
  }
}

/**
 * Whoever comes first after a pause has the cooler processor; so everyone does once.
 * @template T
 * @param {T[]} list
 * @param {number} round
 */
export function inTurn(list, round) {
  const first = round % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}

/**
 * The medians of what one had in each round, beside what another had in the same.
 * @returns {Row}
 */
export function summary(name, results, references) {
  const medianOf = pick => median(results.map((result, round) => pick(result, references[round])))
  return {
    name,
    rate: medianOf(({ rate }) => rate),
    rateRatio: medianOf(({ rate }, reference) => rate / reference.rate),
    cpuMicros: medianOf(({ cpuMicros }) => cpuMicros),
    cpuRatio: medianOf(({ cpuMicros }, reference) => reference.cpuMicros / cpuMicros),
    p99: medianOf(({ p99 }) => p99),
    busy: medianOf(({ busy }) => busy)
  }
}
