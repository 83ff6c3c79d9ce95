// The command line of the suite.
import { parseArgs } from 'node:util'
import type { Mode } from './stage.js'
import { type TroubleKind, troubleKinds } from './trouble.js'

export interface Options {
  readonly seeds: readonly number[]
  readonly processes: readonly number[]
  readonly modes: readonly Mode[]
  /** Of storms with four processes. */
  readonly troubles: readonly TroubleKind[]
  /** Of each storm. */
  readonly seconds: number
  readonly people: number
  readonly only: readonly Scenario[]
  readonly full: boolean
}

const scenarios = ['storm', 'thousand', 'killed-owner', 'redis-outage', 'provider-outage'] as const
export type Scenario = (typeof scenarios)[number]

const USAGE = `Usage: npm run test:chaos -- [options]

  --seeds 1..10      seeds of the storms, a range or a list (default 1)
  --processes 1,4    storms with one server process, with four, or both (default)
  --modes dual       single, dual, or both (default)
  --troubles redis   what else goes wrong with four processes: ${troubleKinds.join(', ')} (default redis,kill)
  --seconds 30       length of each storm (default 6)
  --people 200       simulated browsers in a storm, each with three tabs (default 120)
  --only storm       of ${scenarios.join(', ')}: these alone
  --full             outages at their full length, 30 seconds
`

/** Undefined: the command line makes no sense, and `complain` was told how it could. `helped`: `say` was told all there is. */
export function parseOptions(
  args: readonly string[],
  say: (text: string) => void,
  complain: (text: string) => void
): Options | 'helped' | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        seeds: { type: 'string', default: '1' },
        processes: { type: 'string', default: '1,4' },
        modes: { type: 'string', default: 'single,dual' },
        troubles: { type: 'string', default: 'redis,kill' },
        seconds: { type: 'string', default: '6' },
        people: { type: 'string', default: '120' },
        only: { type: 'string', default: scenarios.join(',') },
        full: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false }
      }
    })
    if (values.help) {
      say(USAGE)
      return 'helped'
    }
    return {
      seeds: numbers(values.seeds),
      processes: numbers(values.processes),
      modes: chosen(['single', 'dual'], values.modes),
      troubles: chosen(troubleKinds, values.troubles),
      seconds: numbers(values.seconds)[0] as number,
      people: numbers(values.people)[0] as number,
      only: chosen(scenarios, values.only),
      full: values.full
    }
  } catch (error) {
    complain(`${(error as Error).message}\n\n${USAGE}`)
    return undefined
  }
}

function numbers(text: string): number[] {
  return text.split(',').flatMap(part => {
    const [first = 0, last = first] = part.split('..').map(Number)
    if (!(first >= 1 && last >= first)) throw new Error(`${text} is not a number, a list or a range such as 1..10.`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

function chosen<T extends string>(all: readonly T[], text: string): T[] {
  return text.split(',').map(name => {
    const found = all.find(known => known === name)
    if (!found) throw new Error(`${name} is not one of ${all.join(', ')}.`)
    return found
  })
}
