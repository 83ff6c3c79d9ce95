/** Writes a CPU profile of one scenario, and prints the functions with the most CPU time. */
import { mkdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startCandidates } from './lineup.js'
import { print, table } from './report.js'
import { scenarios } from './scenarios.js'

const FOLDER = new URL('profiles/', import.meta.url)
const MOST_FUNCTIONS = 40
const WARM_UP_SECONDS = 2

/**
 * @param {string} name name of the scenario
 * @param {string} candidateName
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function profile(name, candidateName, around, { seconds, connections }) {
  const { candidates, stop } = await startCandidates(scenarios[name], [candidateName], around)
  try {
    const [candidate] = candidates
    const file = fileURLToPath(new URL(`${candidateName}-${name}.cpuprofile`, FOLDER))
    await mkdir(FOLDER, { recursive: true })
    await candidate.load({ load: around.load, connections, seconds: WARM_UP_SECONDS })
    await candidate.process.ask('startProfile')
    await candidate.load({ load: around.load, connections, seconds })
    await candidate.process.ask('endProfile', file)
    print(`\n## Profile of ${candidateName}: ${name} (${file})\n`)
    summarize(JSON.parse(await readFile(file, 'utf8')))
  } finally {
    await stop()
  }
}

/** Computes the self time of each function, without the functions that it called. */
function summarize({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map(node => [node.id, node.callFrame]))
  const functions = new Map()
  const places = new Map()
  let total = 0
  for (const [index, id] of samples.entries()) {
    const { functionName, url, lineNumber } = byId.get(id)
    if (functionName === '(idle)') continue
    const place = placeOf(url, functionName)
    const micros = timeDeltas[index]
    total += micros
    add(functions, `${functionName || '(anonymous)'} ${url ? `${shortened(url)}:${lineNumber + 1}` : ''}`, micros)
    add(places, place, micros)
  }
  const rows = (times, most) =>
    [...times]
      .sort(([, a], [, b]) => b - a)
      .slice(0, most)
      .map(([name, micros]) => [name, `${((micros / total) * 100).toFixed(1)}%`])
  print(table(['where', 'self'], rows(places, MOST_FUNCTIONS)))
  print(table(['function', 'self'], rows(functions, MOST_FUNCTIONS)))
}

function add(times, key, micros) {
  times.set(key, (times.get(key) ?? 0) + micros)
}

function placeOf(url, functionName) {
  if (url === '') return functionName.startsWith('(') ? functionName : '(built in)'
  const [, folder] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? []
  return folder ?? (url.startsWith('node:') ? url : shortened(url))
}

function shortened(url) {
  return url.replace(/^file:\/\/.*\/(?:node_modules\/|(?=(?:dist|bench)\/))/, '')
}
