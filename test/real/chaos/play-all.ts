// Runs the variants of scenarios, some of them at the same time, and prints the results.
import { createReport, type Report, type Row, tableOf } from './report.js'

/** One variant of a scenario. */
export type Play = (report: Report) => Promise<void>

/** Plays of which up to `atOnce` run at the same time. */
export interface PlayGroup {
  readonly plays: readonly Play[]
  readonly atOnce: number
}

/** Plays all groups at the same time, and prints the results. Resolves with the exit code. */
export async function playAll(groups: readonly PlayGroup[], print: (text: string) => void): Promise<number> {
  // Exits on these signals, because exit handlers then kill the servers.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
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

  async function playFrom(waiting: (readonly [position: number, play: Play])[]): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) await playOne(next[1], next[0])
  }

  let position = 0
  await Promise.all(
    groups.map(({ plays, atOnce }) => {
      const waiting = plays.map(play => [position++, play] as const)
      return Promise.all(Array.from({ length: atOnce }, () => playFrom(waiting)))
    })
  )
  const ordered = [...rows].sort(([a], [b]) => a - b).flatMap(([, of]) => of)
  print(`\n${tableOf(ordered)}`)
  print(`\n  ${counts.passed} checks passed\n${counts.failed > 0 ? `  ${counts.failed} checks failed\n` : ''}`)
  return counts.failed > 0 ? 1 : 0
}
