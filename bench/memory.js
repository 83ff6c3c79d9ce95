/** Measures resident memory during many requests, compared with bare Koa. */

import { candidatesOf, startCandidates } from './lineup.js'
import { SERVER, scenarios } from './scenarios.js'

const MEBIBYTE = 2 ** 20

/**
 * Measures with one session and with many sessions. One session leaves the caches of the server almost empty. Many sessions
 * fill the caches up to their limits. Programs that do not run on Node are measured with one session.
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function measureMemory(around, options) {
  const lineups = { token: ['koa', SERVER], 'token-many': ['koa', SERVER] }
  if (options.peers) lineups['forward-auth'] = candidatesOf(scenarios['forward-auth'], around, options)
  const rows = []
  for (const [name, names] of Object.entries(lineups)) {
    rows.push(...(await measureScenario(name, names, around, options)))
  }
  return rows
}

async function measureScenario(scenario, names, around, { requests, connections }) {
  const { candidates, stop } = await startCandidates(scenarios[scenario], names, around)
  try {
    const rows = []
    for (const { name, process, load } of candidates) {
      const resident = async () => (await process.ask('usage')).residentBytes / MEBIBYTE
      const half = { load: around.load, connections, amount: Math.round(requests / 2) }
      const atStart = await resident()
      await load(half)
      const halfway = await resident()
      await load(half)
      rows.push({ scenario, name, atStart, halfway, atEnd: await resident() })
    }
    const [koa] = rows
    return rows.map(row => ({ ...row, ratio: row.atEnd / koa.atEnd }))
  } finally {
    await stop()
  }
}
