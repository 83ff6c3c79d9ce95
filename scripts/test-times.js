// Measures where the time of the tests goes. AVA loads this module into each process of tests, which writes its times to a
// folder. When all have ended, `printTimes` prints them. The times of child processes are known on Linux only.
import { ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import timers from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

// A shorter timer yields to other work, or it limits a time that does not pass.
const REAL_WAIT_MS = 200
const SHOWN = 40
const CLOCK_TICKS_PER_SECOND = 100

export const timesFolder = () => mkdtempSync(join(tmpdir(), 'test-times-'))

export default async function measure() {
  const { default: test } = await import('ava')
  const started = performance.now()
  const kinds = {}
  const add = (kind, seconds, count = 1) => {
    kinds[kind] ??= { count: 0, seconds: 0 }
    kinds[kind].count += count
    kinds[kind].seconds += seconds
  }

  let attributed = 0
  const { spawn } = ChildProcess.prototype
  ChildProcess.prototype.spawn = function (options) {
    this.once('exit', () => {
      const ended = secondsOfChildren()
      add(kindOf(options.file), ended - attributed)
      attributed = ended
    })
    return spawn.call(this, options)
  }

  const { setTimeout: setTimer } = globalThis
  globalThis.setTimeout = Object.assign((action, delay, ...rest) => {
    const fired = (...given) => {
      if (delay >= REAL_WAIT_MS) add('timers', delay / 1000)
      return action(...given)
    }
    return setTimer(fired, delay, ...rest)
  }, setTimer)
  const { setTimeout: pause } = timers
  timers.setTimeout = (delay, ...rest) => {
    if (delay >= REAL_WAIT_MS) add('timers', delay / 1000)
    return pause(delay, ...rest)
  }
  syncBuiltinESMExports()

  process.on('exit', () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage()
    const synchronous = secondsOfChildren() - attributed
    if (synchronous > 0) add('programs', synchronous, 0)
    const times = {
      file: relative('dist-test', fileURLToPath(test.meta.file)).replace(/\.js$/, '.ts'),
      wall: (performance.now() - started) / 1000,
      cpu: (userCPUTime + systemCPUTime) / 1e6,
      kinds
    }
    writeFileSync(join(process.env.TEST_TIMES, `${process.pid}.json`), JSON.stringify(times))
  })
}

function kindOf(file) {
  if (/chrom/i.test(file)) return 'browsers'
  if (/redis|valkey/.test(file)) return 'Redis'
  return basename(file) === basename(process.execPath) ? 'Node' : 'programs'
}

/** The processor time of all child processes that have ended, and of their children. */
function secondsOfChildren() {
  try {
    const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ')
    return (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS_PER_SECOND
  } catch {
    return 0
  }
}

/** Prints the times that the processes of tests have written to this folder, and removes it. */
export function printTimes(folder) {
  const all = readdirSync(folder).map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')))
  rmSync(folder, { recursive: true })
  const sums = {}
  for (const times of all) {
    times.total = times.cpu
    for (const [kind, { count, seconds }] of Object.entries(times.kinds)) {
      if (kind !== 'timers') times.total += seconds
      sums[kind] ??= { count: 0, seconds: 0 }
      sums[kind].count += count
      sums[kind].seconds += seconds
    }
  }
  const print = line => process.stdout.write(`  ${line}\n`)
  const number = value => value.toFixed(1).padStart(8)
  print('     CPU    wall  seconds of each file, with its child processes')
  for (const { file, wall, total } of all.sort((a, b) => b.total - a.total).slice(0, SHOWN)) {
    print(`${number(total)}${number(wall)}  ${file}`)
  }
  const own = all.reduce((sum, { cpu }) => sum + cpu, 0)
  print(`${number(own)} s of CPU time in ${all.length} processes of tests`)
  for (const [kind, { count, seconds }] of Object.entries(sums)) {
    print(
      kind === 'timers'
        ? `${number(seconds)} s in ${count} timers of at least ${REAL_WAIT_MS} ms that passed`
        : `${number(seconds)} s of CPU time in child processes: ${kind}, ${count} started`
    )
  }
}
