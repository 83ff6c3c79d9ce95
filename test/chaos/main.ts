// The chaos suite runs the real program while the provider, Redis, the network and the processes fail. It prints the
// results and a table, and exits with code 1 if a check failed.
import { parseOptions } from './options.js'
import { createReport, type Row, tableOf } from './report.js'
import { busyScenarios, type Play, quietScenarios, scenarioNames } from './scenarios.js'

// Exits on these signals, because an exit handler in fleet.ts then kills the servers.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const print = (text: string) => process.stdout.write(text)
const options = parseOptions(process.argv.slice(2), scenarioNames, print, text => process.stderr.write(text))
if (options === 'helped') process.exitCode = 0
else if (options) {
  const playsOf = (scenarios: typeof quietScenarios) => options.only.flatMap(name => scenarios[name]?.(options) ?? [])
  const rows = new Map<number, readonly Row[]>()
  const counts = { passed: 0, failed: 0 }

  /** Prints the output of a scenario when it ends, so that the lines of parallel scenarios do not mix. */
  async function playOne(play: Play, position: number): Promise<void> {
    const lines: string[] = []
    const report = createReport(text => lines.push(text))
    await play(report).catch((error: Error) => report.check('the scenario ran to its end', false, error.message))
    print(lines.join(''))
    rows.set(position, report.rows)
    counts.passed += report.passed
    counts.failed += report.failed
  }

  const busy = [...playsOf(busyScenarios).entries()]
  const quiet = playsOf(quietScenarios).map((play, index) => [busy.length + index, play] as const)
  async function playFrom(waiting: (readonly [position: number, play: Play])[]): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) await playOne(next[1], next[0])
  }
  await Promise.all([playFrom(busy), ...Array.from({ length: options.atOnce }, () => playFrom(quiet))])
  const ordered = [...rows].sort(([a], [b]) => a - b).flatMap(([, of]) => of)
  print(`\n${tableOf(ordered)}`)
  print(`\n  ${counts.passed} checks passed\n${counts.failed > 0 ? `  ${counts.failed} checks failed\n` : ''}`)
  process.exitCode = counts.failed > 0 ? 1 : 0
} else process.exitCode = 2
