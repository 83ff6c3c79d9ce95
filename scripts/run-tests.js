// Runs AVA and shortens its output to one line of progress, and at the end the failures and the counts. All options and files
// are passed on to AVA. A test file can be named by its source: `node scripts/run-tests.js test/log.test.ts`. The first
// argument can be `--coverage`, which writes the coverage that `c8 report` reads, or `--times`, which prints where the time goes.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { printTimes, timesFolder } from './test-times.js'

const CI_INTERVAL_MS = 15_000

const { stdout } = process
const given = process.argv.slice(2)
const [option] = given
const args = given
  .slice(option === '--coverage' || option === '--times' ? 1 : 0)
  .map(arg => arg.replace(/^(?:\.\/)?test\/(.*)\.ts\b/, 'dist-test/$1.js'))

const env = { ...process.env }
if (option === '--times') env.TEST_TIMES = timesFolder()
if (option === '--coverage') {
  env.NODE_V8_COVERAGE = resolve('coverage/tmp')
  rmSync('coverage', { recursive: true, force: true })
}

let passed = 0
let failed = 0
let atEnd = false
let endsWithPassed = false
let isLogOfPassed = false
const notes = []

const seconds = () => Math.round(performance.now() / 1000)
const progress = () => `${passed} passed, ${failed} failed, ${seconds()} s since the start`
const clearLine = () => stdout.isTTY && stdout.write('\r\x1b[K')
const timer = setInterval(
  () => stdout.write(stdout.isTTY ? `\r\x1b[K${progress()}` : `${progress()}\n`),
  stdout.isTTY ? 200 : CI_INTERVAL_MS
)

/**
 * Handles one line of AVA's reporter. AVA first prints a line for each test, then a rule, then the failures in full.
 * Below the line of a test it prints what the test has logged. In a run of all tests, only the logs of tests that fail
 * are shown.
 */
function read(line) {
  isLogOfPassed = line.startsWith('  ✔ ') || (isLogOfPassed && /^ {4}(ℹ| ) /.test(line))
  if (atEnd) {
    if (/^ {2}\d+ tests? passed$/.test(line)) endsWithPassed = true
    stdout.write(`${line}\n`)
  } else if (line.startsWith('  ✔ ')) passed += 1
  else if (isLogOfPassed && args.length === 0) return
  else if (line.startsWith('  ✘ [fail]')) {
    failed += 1
    clearLine()
    stdout.write(`${line}\n`)
  } else if (line === '  ─') {
    atEnd = true
    clearInterval(timer)
    clearLine()
    // Exceptions outside of a test, time-outs, skipped tests, and the output of tests.
    for (const note of notes) stdout.write(`${note}\n`)
    stdout.write(`${line}\n`)
  } else if (line !== '' || (notes.length > 0 && notes.at(-1) !== '')) notes.push(line)
}

const ava = spawn(process.execPath, ['node_modules/ava/entrypoints/cli.mjs', ...args], {
  env,
  stdio: ['inherit', 'pipe', 'pipe']
})
for (const stream of [ava.stdout, ava.stderr]) createInterface({ input: stream }).on('line', read)
ava.on('close', (code, signal) => {
  clearInterval(timer)
  // AVA has ended before its rule, for example because no file matches.
  if (!atEnd) for (const note of notes) stdout.write(`${note}\n`)
  // If a test fails, AVA does not print how many tests passed.
  if (!endsWithPassed && passed > 0) stdout.write(`  ${passed} ${passed === 1 ? 'test' : 'tests'} passed\n`)
  if (env.TEST_TIMES) printTimes(env.TEST_TIMES)
  stdout.write(`  The tests took ${seconds()} s.\n`)
  process.exitCode = signal ? 1 : code
})
// AVA has the same terminal and gets the same Ctrl+C. It then prints the pending tests.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => ava.kill('SIGTERM'))
