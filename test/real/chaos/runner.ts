// Runs scenarios, some of them in parallel, prints their results and counts their checks.
import { inScope, type Teardown } from '../../helpers/scope.js'

/** A row of the table that is printed after all scenarios. */
export interface Row {
  readonly failure: string
  readonly logins: number
  readonly lost: number
  /** The number of logins whose refresh token was in flight in a killed process. */
  readonly inFlight?: number
  /** How often the cookie of a logged-out session was accepted. */
  readonly letIn?: number
  readonly remark?: string
}

export interface Report {
  title(text: string): void
  /** Prints one line of named numbers. */
  figures(values: Readonly<Record<string, string | number>>): void
  check(what: string, holds: boolean, detail?: string): void
  /** Prints a line that helps to find out why a check failed. */
  note(text: string): void
  row(row: Row): void
}

/** One variant of a scenario. Its scope is closed when it has ended. */
export type Play = (report: Report, scope: Teardown) => Promise<void>

/** Plays of which up to `inParallel` run at the same time. */
interface PlayGroup {
  readonly plays: readonly Play[]
  readonly inParallel: number
}

/** Plays all groups in parallel, and prints the results. Resolves with the exit code. */
async function playAll(groups: readonly PlayGroup[]): Promise<number> {
  // Exits on these signals, because exit handlers then kill the servers.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const rows: Row[][] = []
  const counts = { passed: 0, failed: 0 }

  /** Prints the output of a scenario when it ends, so that the lines of parallel scenarios do not mix. */
  async function playOne(play: Play, position: number): Promise<void> {
    const lines: string[] = []
    const ofPlay: Row[] = []
    const report: Report = {
      title: text => lines.push(`\n== ${text}\n`),
      figures(values) {
        const named = Object.entries(values).map(([name, value]) => `${name} ${value}`)
        lines.push(`   ${named.join(' · ')}\n`)
      },
      check(what, holds, detail = '') {
        counts[holds ? 'passed' : 'failed']++
        lines.push(`   ${holds ? '✔' : '✘'} ${what}${!holds && detail ? `: ${detail}` : ''}\n`)
      },
      note: text => lines.push(`       ${text}\n`),
      row: row => ofPlay.push(row)
    }
    await inScope(scope => play(report, scope)).catch((error: Error) =>
      report.check('the scenario ran to its end', false, error.message)
    )
    process.stdout.write(lines.join(''))
    rows[position] = ofPlay
  }

  async function playFrom(waiting: (readonly [position: number, play: Play])[]): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) await playOne(next[1], next[0])
  }

  let position = 0
  await Promise.all(
    groups.map(({ plays, inParallel }) => {
      const waiting = plays.map(play => [position++, play] as const)
      return Promise.all(Array.from({ length: inParallel }, () => playFrom(waiting)))
    })
  )
  process.stdout.write(`\n${tableOf(rows.flat())}`)
  process.stdout.write(
    `\n  ${counts.passed} checks passed\n${counts.failed > 0 ? `  ${counts.failed} checks failed\n` : ''}`
  )
  return counts.failed > 0 ? 1 : 0
}

/** Formats the rows as a table in Markdown. */
function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ failure, logins, lost, inFlight = 0, letIn, remark = '' }) =>
    [failure, logins, lost, inFlight, letIn ?? '', remark].join(' | ')
  )
  const head = [
    'failure | logins | lost | in flight in a killed process | logged-out cookies accepted | remark',
    '--- | --- | --- | --- | --- | ---'
  ]
  return [...head, ...lines].map(line => `| ${line} |\n`).join('')
}

/**
 * Runs the suite of a command line.
 * @param parse returns undefined for `--help`, and throws if the command line is wrong
 */
export async function runSuite(usage: string, parse: () => readonly PlayGroup[] | undefined): Promise<void> {
  try {
    const groups = parse()
    if (groups) process.exitCode = await playAll(groups)
    else process.stdout.write(usage)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
  }
}

/** Parses `4`, `1,4` or `1..10`. */
export function numbers(text: string): number[] {
  return text.split(',').flatMap(part => {
    const [first = 0, last = first] = part.split('..').map(Number)
    if (!(first >= 1 && last >= first)) throw new Error(`${text} is not a number, a list or a range such as 1..10.`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

/** Parses a list of names. Each must be one of `all`. */
export function chosen<T extends string>(all: readonly T[], text: string): T[] {
  return text.split(',').map(name => {
    const found = all.find(known => known === name)
    if (!found) throw new Error(`${name} is not one of ${all.join(', ')}.`)
    return found
  })
}

/** Returns one play for each pair of a value of `first` and a value of `second`. */
export function pairs<A, B>(first: readonly A[], second: readonly B[], play: (a: A, b: B) => Play): Play[] {
  return first.flatMap(a => second.map(b => play(a, b)))
}
