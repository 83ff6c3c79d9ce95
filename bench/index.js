/**
 * `npm run bench`: compares the server with bare Koa and other servers. The servers share one core, and the load generator
 * uses another. README.md explains the output.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { measureDownload } from './download.js'
import { measureEventLoop } from './event-loop.js'
import { describeMachine, load, redisProgram } from './machine.js'
import { measureMemory } from './memory.js'
import { parseOptions, USAGE } from './options.js'
import { LOAD_CORE, startProcess, unpinned } from './processes.js'
import { profile } from './profile.js'
import { compareRatios, ratiosTable, readRecord, refusal, writeRecord } from './ratios.js'
import { measureRefresh } from './refresh.js'
import { print } from './report.js'
import { FILE_BYTES, FILE_NAME, PROGRAMS } from './scenarios.js'
import { measureStartup } from './startup.js'
import { measureThroughput } from './throughput.js'

const OTHERS = {
  startup: measureStartup,
  memory: measureMemory,
  refresh: measureRefresh,
  download: measureDownload,
  'event-loop': measureEventLoop,
  lost: measureLost
}

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
  if (!existsSync(new URL('../dist/index.js', import.meta.url))) throw new Error('Run `npm run build` first.')
  const reason = options.compare && refusal(load())
  if (reason) throw new Error(reason)
  const recorded = options.compare ? await readRecord() : undefined
  if (options.only.includes('lost') || options.peers) installPackages()
  const skipped = options.peers ? await installPrograms() : new Map()
  const machine = describeMachine()
  const measured = await withSurroundings(skipped, async around => {
    if (options.profile !== undefined) return profile(around, options)
    describeRun(machine, options)
    for (const [name, why] of skipped) print(`${name} is skipped: ${why}`)
    return measureAll(around, options)
  })
  if (!measured || Object.keys(measured).length === 0) return
  if (recorded) print(`\nThe recorded ratios are of ${recorded.date}: ${inWords(recorded.machine)}.`)
  print(ratiosTable(measured, recorded?.ratios))
  if (options.record) {
    await writeRecord({ date: new Date().toISOString().slice(0, 10), machine, ratios: measured })
    print('These ratios are in bench/results/ratios.json.')
  }
  if (recorded && compareRatios(recorded.ratios, measured).some(({ isWorse }) => isWorse)) process.exitCode = 1
}

/** Its packages may have been installed only now. */
async function measureLost(...args) {
  const { compareLost } = await import('./lost/measure.js')
  return compareLost(...args)
}

/** Returns the ratios of all measurements. */
async function measureAll(around, options) {
  const ratios = {}
  for (const name of options.only) {
    const measure = OTHERS[name] ?? ((...args) => measureThroughput(name, ...args))
    const result = await measure(around, options)
    print(result.text)
    Object.assign(ratios, result.ratios)
  }
  return ratios
}

/** Runs `work` with the processes and the folder that all measurements share. */
async function withSurroundings(skipped, work) {
  const wwwroot = await mkdtemp(join(tmpdir(), 'bench-wwwroot-'))
  await writeFile(join(wwwroot, FILE_NAME), '/'.repeat(FILE_BYTES))
  const load = startProcess('load.js', LOAD_CORE)
  const provider = startProcess('provider.js', LOAD_CORE)
  const redis = redisProgram && startProcess('redis.js', LOAD_CORE, [redisProgram])
  try {
    const [providerUrl, redisUrl] = [await provider.ask('start'), await redis?.ask('start')]
    return await work({ load, provider, redis, providerUrl, redisUrl, wwwroot, skipped })
  } finally {
    await Promise.all([load, provider, redis].map(process => process?.stop()))
    await rm(wwwroot, { recursive: true })
  }
}

function describeRun(machine, { rounds, seconds, connections }) {
  print(`# Benchmark\n\n${inWords(machine)}.`)
  print(
    unpinned
      ? `The processes are not pinned to cores: ${unpinned}.`
      : 'The servers run on core 0. The load generator, the identity provider and Redis run on core 1.'
  )
  print(
    `Medians of ${rounds} rounds, in which the candidates take turns for ${seconds} s over ${connections} connections.`
  )
}

function inWords({ cpu, cores, node, loadBefore }) {
  return `${cpu}, ${cores} cores, Node ${node}, load average before the start ${loadBefore}`
}

/** Returns the programs that cannot be installed, with the reason. */
async function installPrograms() {
  const skipped = new Map()
  for (const name of PROGRAMS) {
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
