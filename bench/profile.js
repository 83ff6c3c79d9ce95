/** Writes a CPU profile of this server in one scenario, and prints the parts and the functions with the most CPU time. */
import { mkdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startCandidates } from './lineup.js'
import { fileOf, isNotCounted, partsOf } from './parts.js'
import { startRefreshes } from './refresh.js'
import { print, table } from './report.js'
import { SERVER, scenarios } from './scenarios.js'

const FOLDER = new URL('profiles/', import.meta.url)
const MOST_FUNCTIONS = 30
const WARM_UP_SECONDS = 2

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function profile(around, { profile: name, connections, seconds }) {
  const file = fileURLToPath(new URL(`${name}.cpuprofile`, FOLDER))
  await mkdir(FOLDER, { recursive: true })
  // In production, most servers that refresh sessions have a Redis.
  const server =
    name === 'refresh' ? await startRefreshes(around, around.redis !== undefined) : await startScenario(name, around)
  try {
    await server.load({ connections, seconds: WARM_UP_SECONDS })
    await server.process.ask('startProfile')
    await server.load({ connections, seconds })
    await server.process.ask('endProfile', file)
  } finally {
    await server.stop()
  }
  print(`\n## Profile: ${name}\n`)
  print(`The whole profile is in ${file}. The developer tools of Chromium can open it.\n`)
  summarize(JSON.parse(await readFile(file, 'utf8')))
}

async function startScenario(name, around) {
  const scenario = scenarios[name]
  const entrant = scenario.entrants.findLast(({ file }) => file === SERVER)
  const { candidates, stop } = await startCandidates(scenario, [entrant], around)
  return { ...candidates[0], stop }
}

function summarize(cpuProfile) {
  const { nodes, samples, timeDeltas } = cpuProfile
  const parts = partsOf(cpuProfile).map(({ part, share, example }) => [part, percent(share), example])
  print('Each function counts for the part of the nearest caller that has one.\n')
  print(table(['part', 'CPU time', 'most expensive function'], parts))

  const byId = new Map(nodes.map(node => [node.id, node.callFrame]))
  const functions = new Map()
  let total = 0
  for (const [index, id] of samples.entries()) {
    const callFrame = byId.get(id)
    if (isNotCounted(callFrame)) continue
    const { functionName, url, lineNumber } = callFrame
    const micros = timeDeltas[index]
    total += micros
    const name = `${functionName || '(anonymous)'} ${url ? `${fileOf(url)}:${lineNumber + 1}` : ''}`
    functions.set(name, (functions.get(name) ?? 0) + micros)
  }
  const rows = [...functions].sort(([, a], [, b]) => b - a).slice(0, MOST_FUNCTIONS)
  print('The functions with the most CPU time, without the functions that they called:\n')
  print(
    table(
      ['function', 'CPU time'],
      rows.map(([name, micros]) => [name, percent(micros / total)])
    )
  )
}

function percent(share) {
  return `${(share * 100).toFixed(1)}%`
}
