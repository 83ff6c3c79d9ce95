/** Measures how long the event loop is busy while many users open a page, beside bare Koa, which gets the same requests. */
import { startCandidates } from './lineup.js'
import { median, table } from './report.js'
import { scenarios } from './scenarios.js'
import { PROFILE_PATH, PROXIED_PATH, TOKEN_PATH } from './settings.js'

const USERS = 500
const FILES = 20
const PATHS = [TOKEN_PATH, PROFILE_PATH, ...Array(FILES).fill(`${PROXIED_PATH}/bytes-2048`)]

/** @type {import('./ratios.js').Measurement} */
export async function measureEventLoop(around, { rounds }) {
  const scenario = scenarios['token-many']
  const { candidates, stop } = await startCandidates(scenario, scenario.entrants, around)
  try {
    const readings = candidates.map(() => [])
    for (let round = 0; round <= rounds; round++) {
      for (const [index, { process, request, many }] of candidates.entries()) {
        await process.ask('startDelay')
        const loaded = await around.load.ask('pages', { ...request, many: { ...many, count: USERS }, paths: PATHS })
        readings[index].push({ ...loaded, ...(await process.ask('endDelay')) })
      }
    }
    const counted = readings.map(all => all.slice(1))
    const [koa, ours] = counted
    const ratio = median(ours.map(({ p99 }, round) => p99 / koa[round].p99))
    const rows = candidates.map(({ name }, index) => [
      name,
      ...['p99', 'max', 'seconds'].map(key => median(counted[index].map(reading => reading[key])).toFixed(1)),
      `${(median(counted[index].map(({ refused }) => refused)) * 100).toFixed(1)}%`
    ])
    const title = `\n## event-loop: ${USERS} users open a page with ${PATHS.length} requests within a second\n\n`
    return {
      text: title + table(['', 'delay p99 ms', 'max ms', 'all done s', '503'], rows),
      ratios: { 'event-loop': ratio }
    }
  } finally {
    await stop()
  }
}
