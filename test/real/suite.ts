// Runs the scenarios of a suite outside of AVA, some of them in parallel. It reads the command line, prints the results and counts
// the checks.
import { parseArgs } from 'node:util'
import { inScope, type Teardown } from '../helpers/scope.js'

/** A row of the table of failures that is printed after all scenarios. */
export interface Row {
  readonly failure: string
  readonly logins: number
  readonly lost: number
  /** The number of logins whose refresh token was in flight in a killed process. */
  readonly inFlight: number
  /** How often the cookie of a logged-out session was accepted. */
  readonly letIn: number
  readonly remark: string
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

/** Plays all, up to `inParallel` at the same time, and prints the results. Resolves with the exit code. */
async function playAll(plays: readonly Play[], inParallel: number): Promise<number> {
  // Exits on these signals, because exit handlers then kill the servers.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const rows: Row[][] = []
  const counts = { passed: 0, failed: 0 }

  /** Prints the output of a scenario that runs in parallel to others when it ends, so that their lines do not mix. */
  async function playOne(play: Play, position: number): Promise<void> {
    const lines: string[] = []
    const print = (line: string) => void (inParallel === 1 ? process.stdout.write(line) : lines.push(line))
    const ofPlay: Row[] = []
    const report: Report = {
      title: text => print(`\n== ${text}\n`),
      figures(values) {
        const named = Object.entries(values).map(([name, value]) => `${name} ${value}`)
        print(`   ${named.join(' · ')}\n`)
      },
      check(what, holds, detail = '') {
        counts[holds ? 'passed' : 'failed']++
        print(`   ${holds ? '✔' : '✘'} ${what}${!holds && detail ? `: ${detail}` : ''}\n`)
      },
      note: text => print(`       ${text}\n`),
      row: row => ofPlay.push(row)
    }
    await inScope(scope => play(report, scope)).catch((error: Error) => {
      report.check('the scenario ran to its end', false, error.message)
      report.note(error.stack ?? '')
    })
    process.stdout.write(lines.join(''))
    rows[position] = ofPlay
  }

  const waiting = [...plays.entries()]
  async function playNext(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift()) await playOne(next[1], next[0])
  }
  await Promise.all(Array.from({ length: inParallel }, playNext))
  process.stdout.write(tableOf(rows.flat()))
  process.stdout.write(`\n  ${counts.passed} checks passed\n`)
  if (counts.failed > 0) process.stdout.write(`  ${counts.failed} checks failed\n`)
  return counts.failed > 0 ? 1 : 0
}

/** Formats the rows as a table in Markdown. */
function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ failure, logins, lost, inFlight, letIn, remark }) =>
    [failure, logins, lost, inFlight, letIn, remark].join(' | ')
  )
  const head = [
    'failure | logins | lost | in flight in a killed process | logged-out cookies accepted | remark',
    '--- | --- | --- | --- | --- | ---'
  ]
  return rows.length === 0 ? '' : `\n${[...head, ...lines].map(line => `| ${line} |\n`).join('')}`
}

interface Option {
  /** The value if the option is not given. A flag has `false`. */
  readonly usual: string | false
  readonly help: string
}

type Values<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends { readonly usual: string } ? string : boolean
}

interface Suite<Options> {
  /** The script of package.json that runs the suite. */
  readonly script: string
  /** The values of the option `--only`. By default all of them are run. If there are none, the option does not exist. */
  readonly names?: readonly string[]
  readonly options?: Options
  /** The end of the help. */
  readonly remark?: string
  /** Returns the plays of the names, or throws if an option has a wrong value. */
  plays(only: readonly string[], values: Values<Options>): readonly Play[]
}

/** Runs the part of a suite that the command line selects. */
export async function runSuite<Options extends Readonly<Record<string, Option>>>(suite: Suite<Options>): Promise<void> {
  const { script, names = [], remark, plays } = suite
  const options: Readonly<Record<string, Option>> = {
    ...(names.length > 0 && {
      only: { usual: names.join(','), help: `what to run (default all): ${names.join(', ')}` }
    }),
    ...suite.options
  }
  const lines = Object.entries(options).map(([name, { help }]) => `  --${name.padEnd(10)} ${help}\n`)
  const help = `Usage: npm run ${script} -- [options]\n\n${lines.join('')}${remark ? `\n${remark}\n` : ''}`
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean' },
        ...Object.fromEntries(
          Object.entries(options).map(([name, { usual }]) => [
            name,
            { type: usual === false ? 'boolean' : 'string', default: usual } as const
          ])
        )
      }
    })
    const { only, parallel, ...others } = values as { only?: string; parallel?: string }
    const chosenPlays = plays(only === undefined ? [] : chosen(names, only), others as unknown as Values<Options>)
    if (values.help) process.stdout.write(help)
    else process.exitCode = await playAll(chosenPlays, number(parallel ?? '1'))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${help}`)
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

export function number(text: string): number {
  return numbers(text)[0] as number
}

/** Parses a list of names. Each must be one of `all`. */
export function chosen<T extends string>(all: readonly T[], text: string): T[] {
  return text.split(',').map(name => {
    const found = all.find(known => known === name)
    if (!found) throw new Error(`${name} is not one of ${all.join(', ')}.`)
    return found
  })
}
