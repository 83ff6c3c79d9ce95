/** Measures one scenario. Its candidates take turns in several rounds. */
import { candidatesOf, startCandidates } from './lineup.js'
import { median } from './report.js'

export const WARM_UP_SECONDS = 1

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {number} rate requests a second
 * @property {number} rateRatio requests a second, divided by those of the first candidate in the same round
 * @property {number} cpuMicros CPU time of the server's process for one request, in microseconds
 * @property {number} cpuRatio CPU time of the first candidate, divided by the CPU time of this candidate
 * @property {number} p99 milliseconds
 * @property {number} busy used share of the core; below 0.9 the load generator was the limit, and CPU time is more reliable
 */

/**
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function measureThroughput(scenario, around, options) {
  const { rounds, seconds, connections } = options
  const names = candidatesOf(scenario, around, options)
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
 * Rotates the list, so that each candidate is the first one in some rounds. The first candidate has an advantage, because the
 * processor is cooler after a pause.
 * @template T
 * @param {T[]} list
 * @param {number} round
 */
export function inTurn(list, round) {
  const first = round % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}

/**
 * Returns the medians of a candidate over all rounds, compared with the first candidate in the same rounds.
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
