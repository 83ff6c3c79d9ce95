/**
 * `npm run bench`: compares the server with bare Koa and other servers. The servers share one core, and the load generator
 * uses another. README.md explains the output.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { perCoreReport, replicasReport } from './capacity/report.js'
import { goalsTable } from './goals.js'
import { compareLost } from './lost/compare.js'
import { measureMemory } from './memory.js'
import { parseOptions, USAGE } from './options.js'
import { measurePerCore } from './per-core.js'
import { LOAD_CORE, startProcess, unpinned } from './processes.js'
import { profile } from './profile.js'
import { measureRefreshCost } from './refresh-cost.js'
import { measureReplicas } from './replicas.js'
import { print } from './report.js'
import { measureScale } from './scale.js'
import { FILE_BYTES, FILE_NAME, PROGRAMS, scenarios } from './scenarios.js'
import { measureSessionStore } from './session-store.js'
import { measureSoak } from './soak.js'
import { measureStartup } from './startup.js'
import { measureStreams } from './streams.js'
import {
  memoryTable,
  refreshCostTable,
  scaleTable,
  sessionStoreTable,
  soakTable,
  startupTable,
  streamsTable,
  throughputTable
} from './tables.js'
import { measureThroughput } from './throughput.js'

try {
  const options = parseOptions()
  if (options.help) print(USAGE)
  else await main(options)
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

/** @param {import('./options.js').Options} options */
async function main(options) {
  if (!existsSync(new URL('../dist/server.js', import.meta.url))) throw new Error('Run `npm run build` first.')
  if (options.only.includes('lost')) installPackages()
  const skipped = options.peers ? await installPeers() : new Map()
  const wwwroot = await mkdtemp(join(tmpdir(), 'bench-wwwroot-'))
  // Apache's processes change to another user, who must be able to read the file.
  await chmod(wwwroot, 0o755)
  await writeFile(join(wwwroot, FILE_NAME), '/'.repeat(FILE_BYTES))
  const load = startProcess('load.js', LOAD_CORE)
  const provider = startProcess('provider.js', LOAD_CORE)
  try {
    const around = { load, provider, wwwroot, skipped, providerUrl: await provider.ask('start') }
    if (options.profile !== undefined) {
      await profile(options.profile, options.candidate, around, options)
      return
    }
    if (options.only.some(name => name !== 'lost')) describeRun(options)
    for (const [name, reason] of skipped) print(`${name} is skipped: ${reason}`)
    const results = new Map()
    for (const name of options.only) {
      const keep = result => {
        results.set(name, result)
        return result
      }
      print(await measure(name, around, options, keep))
    }
    if (results.size > 0) print(goalsTable(results))
  } finally {
    await Promise.all([load.stop(), provider.stop()])
    await rm(wwwroot, { recursive: true })
  }
}

/**
 * Runs a measurement, and returns its table.
 * @param {<T>(result: T) => T} keep keeps the result of a measurement for the table of goals
 */
async function measure(name, around, options, keep) {
  if (name === 'lost') return compareLost(options)
  if (name === 'startup') return startupTable(keep(await measureStartup(around, options)))
  if (name === 'memory') return memoryTable(keep(await measureMemory(around, options)), options.requests)
  if (name === 'scale') return scaleTable(await measureScale(around, options))
  if (name === 'session-store') return sessionStoreTable(await measureSessionStore(around, options))
  if (name === 'refresh-cost') return refreshCostTable(keep(await measureRefreshCost(around, options)))
  if (name === 'replicas') return replicasReport(await measureReplicas(around, options), options)
  if (name === 'per-core') return perCoreReport(await measurePerCore(around, options), options)
  if (name === 'soak') return soakTable(await measureSoak(around, options))
  if (name === 'streams') return streamsTable(await measureStreams(around))
  return throughputTable(name, scenarios[name], keep(await measureThroughput(scenarios[name], around, options)))
}

function describeRun({ rounds, seconds, connections }) {
  print(`# Benchmark\n\n${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.version}.`)
  print(
    unpinned
      ? `The processes are not pinned to cores: ${unpinned}.`
      : 'The servers run on core 0. The load generator and the identity provider run on core 1.'
  )
  print(
    `The load average before the start was ${loadavg()[0].toFixed(1)}. Above 0.5, compare only ratios within one table.`
  )
  print(
    `Number of rounds: ${rounds}. Each round measures each candidate for ${seconds} s over ${connections} connections.`
  )
  print('The candidates take turns in each round. The values are medians over all rounds.')
}

/** Returns the peers that cannot be installed, with the reason. */
async function installPeers() {
  installPackages()
  const skipped = new Map()
  for (const name of Object.keys(PROGRAMS)) {
    const { install } = await import(`./candidates/${name}.js`)
    const reason = install()
    if (reason) skipped.set(name, reason)
  }
  return skipped
}

function installPackages() {
  const cwd = fileURLToPath(new URL('.', import.meta.url))
  const { dependencies } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'))
  if (Object.keys(dependencies).every(name => existsSync(join(cwd, 'node_modules', name)))) return
  // Windows needs a shell, because npm is a script there.
  const { status } = spawnSync('npm ci --no-audit --no-fund', { cwd, stdio: 'inherit', shell: true })
  if (status !== 0) throw new Error('`npm ci` in bench/ failed.')
}
