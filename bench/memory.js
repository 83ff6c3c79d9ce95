/** Measures resident memory during many requests, compared with bare Koa. */
import { startCandidates } from './lineup.js'
import { table } from './report.js'
import { scenarios } from './scenarios.js'

const MEBIBYTE = 2 ** 20
const CASES = { token: 'one session', 'token-many': '10,000 sessions' }

/**
 * Measures with one session and with many sessions. One session leaves the memory of the server almost empty. Many sessions fill
 * it up to its limits.
 * @type {import('./ratios.js').Measurement}
 */
export async function measureMemory(around, options) {
  const rows = []
  const ratios = {}
  for (const [name, title] of Object.entries(CASES)) {
    const [koa, ours] = await measureScenario(scenarios[name], around, options)
    ratios[`memory, ${title}`] = ours.atEnd / koa.atEnd
    for (const row of [koa, ours]) rows.push({ ...row, title, ratio: row.atEnd / koa.atEnd })
  }
  const cells = rows.map(({ name, title, atStart, atEnd, ratio }) => [
    `${name}, ${title}`,
    ...[atStart, atEnd].map(Math.round),
    ratio.toFixed(2)
  ])
  const title = `\n## memory: resident MiB before and after ${options.requests} requests\n\n`
  return { text: title + table(['', 'start', 'end', 'ratio'], cells), ratios }
}

async function measureScenario(scenario, around, { requests, connections }) {
  const { candidates, stop } = await startCandidates(scenario, scenario.entrants, around)
  try {
    const rows = []
    for (const { name, process, load } of candidates) {
      const resident = async () => (await process.ask('usage')).residentBytes / MEBIBYTE
      const atStart = await resident()
      // The garbage collector settles between the halves. After one long run, the memory differed by up to 80 MiB.
      for (let half = 0; half < 2; half++) await load({ connections, amount: requests / 2 })
      rows.push({ name, atStart, atEnd: await resident() })
    }
    return rows
  } finally {
    await stop()
  }
}
