// The command line of the suite.
import { parseArgs } from 'node:util'
import type { Mode } from './stage.js'
import { type TroubleKind, troubleKinds } from './trouble.js'

export interface Options {
  readonly seeds: readonly number[]
  readonly processes: readonly number[]
  readonly modes: readonly Mode[]
  /** The failures in storms with four processes. */
  readonly troubles: readonly TroubleKind[]
  /** The length of each storm. */
  readonly seconds: number
  readonly people: number
  /** The names of the scenarios to run. */
  readonly only: readonly string[]
  /** The number of scenarios that mostly wait and run at the same time. */
  readonly atOnce: number
  readonly full: boolean
}

// The short run is for every change, the full run for a release.
const SHORT = { processes: '4', modes: 'dual', troubles: 'redis,kill', seconds: '4', people: '60' }
const FULL = { processes: '1,4', modes: 'single,dual', troubles: 'redis,kill,restart', seconds: '10', people: '120' }

const usage = (scenarios: readonly string[]) => `Usage: npm run test:chaos -- [options]

  --only storm       the scenarios to run (default all): ${scenarios.join(', ')}
  --full             all variants at their full length
  --modes dual       single, dual, or both (default ${SHORT.modes}, with --full ${FULL.modes})
  --at-once 4        number of scenarios that mostly wait and run at the same time (default 6)

For storms:
  --seeds 1..10      a range or a list (default 1)
  --processes 1,4    one server process, four, or both (default ${SHORT.processes}, with --full ${FULL.processes})
  --troubles redis   other failures with four processes: ${troubleKinds.join(', ')}
                     (default ${SHORT.troubles}, with --full ${FULL.troubles})
  --seconds 30       length of each storm (default ${SHORT.seconds}, with --full ${FULL.seconds})
  --people 200       simulated browsers, each with three tabs (default ${SHORT.people}, with --full ${FULL.people})
`

/**
 * Returns undefined if the command line is wrong, after passing the reason to `complain`. Returns `helped` after
 * passing the usage text to `say`.
 */
export function parseOptions(
  args: readonly string[],
  scenarios: readonly string[],
  say: (text: string) => void,
  complain: (text: string) => void
): Options | 'helped' | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        seeds: { type: 'string', default: '1' },
        processes: { type: 'string' },
        modes: { type: 'string' },
        troubles: { type: 'string' },
        seconds: { type: 'string' },
        people: { type: 'string' },
        only: { type: 'string', default: scenarios.join(',') },
        'at-once': { type: 'string', default: '6' },
        full: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false }
      }
    })
    if (values.help) {
      say(usage(scenarios))
      return 'helped'
    }
    const given = { ...(values.full ? FULL : SHORT), ...values }
    return {
      seeds: numbers(values.seeds),
      processes: numbers(given.processes),
      modes: chosen(['single', 'dual'], given.modes),
      troubles: chosen(troubleKinds, given.troubles),
      seconds: numbers(given.seconds)[0] as number,
      people: numbers(given.people)[0] as number,
      only: chosen(scenarios, values.only),
      atOnce: numbers(values['at-once'])[0] as number,
      full: values.full
    }
  } catch (error) {
    complain(`${(error as Error).message}\n\n${usage(scenarios)}`)
    return undefined
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
