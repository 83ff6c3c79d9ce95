// The command line of the suite.
import { parseArgs } from 'node:util'
import { type TroubleKind, troubleKinds } from './trouble.js'

export interface Options {
  readonly seeds: readonly number[]
  readonly processes: readonly number[]
  readonly modes: readonly ('single' | 'dual')[]
  /** Of each storm. */
  readonly seconds: number
  readonly people: number
  readonly troubles: readonly TroubleKind[]
}

export const USAGE = `Usage: npm run test:chaos -- [options]

  --seeds 1..10       seeds of the storms, a range or a list (default 1)
  --processes 1,4     how many server processes
  --modes dual        single, dual (default both)
  --seconds 30        length of each storm
  --people 200        simulated browsers, each with three tabs
`

export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '1' },
      processes: { type: 'string', default: '1' },
      modes: { type: 'string', default: 'single,dual' },
      seconds: { type: 'string', default: '8' },
      people: { type: 'string', default: '200' },
      troubles: { type: 'string', default: troubleKinds.join(',') }
    }
  })
  return {
    seeds: numbers(values.seeds),
    processes: numbers(values.processes),
    modes: values.modes.split(',').map(mode => (mode === 'single' ? 'single' : 'dual')),
    seconds: Number(values.seconds),
    people: Number(values.people),
    troubles: troubleKinds.filter(kind => values.troubles.split(',').includes(kind))
  }
}

function numbers(text: string): number[] {
  return text.split(',').flatMap(part => {
    const [first = 1, last = first] = part.split('..').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
