/** Writes a CPU profile of this server in one scenario, and prints the parts and the functions with the most CPU time. */
import { mkdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startCandidates } from './lineup.js'
import { startRefreshes } from './refresh.js'
import { print, table } from './report.js'
import { SERVER, scenarios } from './scenarios.js'

const FOLDER = new URL('profiles/', import.meta.url)
const ROOT = new URL('..', import.meta.url).href
const MOST_ROWS = 30
const WARM_UP_SECONDS = 2
// The names of V8 for its own work.
const OWN_WORK = new Set(['(garbage collector)', '(program)'])
/** The time without requests, and that of the profiler itself, which starts and ends in this function of Node's inspector. */
const NOT_COUNTED = new Set(['(idle)', 'dispatch '])

/**
 * @param {import('./lineup.js').Around} around
 * @param {import('./options.js').Options} options
 */
export async function profile(around, { profile: name, connections, seconds }) {
  process.env.BENCH_MODULES = 'yes'
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
  const cpuProfile = JSON.parse(await readFile(file, 'utf8'))
  print('Promises, events and timers of Node count for the folder or the package that called them.\n')
  print(sharesTable('part', cpuProfile, partsOf(cpuProfile)))
  print('Without the functions that they called:\n')
  print(sharesTable('function', cpuProfile, functionsOf(cpuProfile)))
}

async function startScenario(name, around) {
  const scenario = scenarios[name]
  const entrant = scenario.entrants.findLast(({ file }) => file === SERVER)
  const { candidates, stop } = await startCandidates(scenario, [entrant], around)
  return { ...candidates[0], stop }
}

/** Returns the part of each call in the tree: a folder of `dist/`, a package, a module of Node, or V8. */
function partsOf({ nodes }) {
  const parts = new Map()
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id])))
  // A parent comes before its children.
  for (const { id, callFrame } of nodes) {
    const { functionName } = callFrame
    const own = OWN_WORK.has(functionName) ? functionName : partOf(callFrame.url)
    parts.set(id, own ?? parts.get(parents.get(id)) ?? 'everything else')
  }
  return parts
}

function partOf(url) {
  const [, inPackage] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? []
  // The promises, events and timers of Node count for their callers.
  return inPackage ?? /^dist\/[^/]+/.exec(fileOf(url))?.[0] ?? /^node:(?:_http|net$|internal\/crypto)/.exec(url)?.[0]
}

function functionsOf({ nodes }) {
  return new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      `${functionName || '(anonymous)'} ${url ? `${fileOf(url)}:${lineNumber + 1}` : ''}`
    ])
  )
}

/** Returns the path of a file below `node_modules`, or below the folder of this project. */
function fileOf(url) {
  return url.replace(/^.*\/node_modules\//, '').replace(ROOT, '')
}

/** The names with the most CPU time. The time in which the process was idle is not counted. */
function sharesTable(head, { nodes, samples, timeDeltas }, names) {
  const idle = nodes.filter(({ callFrame: { functionName, url } }) =>
    [functionName, `${functionName} ${url}`].some(name => NOT_COUNTED.has(name))
  )
  const notCounted = new Set(idle.map(({ id }) => id))
  const sums = new Map()
  let total = 0
  for (const [index, id] of samples.entries()) {
    if (notCounted.has(id)) continue
    sums.set(names.get(id), (sums.get(names.get(id)) ?? 0) + timeDeltas[index])
    total += timeDeltas[index]
  }
  const rows = [...sums].sort(([, a], [, b]) => b - a).slice(0, MOST_ROWS)
  return table(
    [head, 'CPU time'],
    rows.map(([name, micros]) => [name, `${((micros / total) * 100).toFixed(1)}%`])
  )
}
