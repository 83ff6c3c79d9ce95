// The chaos suite runs the real program while the provider, Redis, the network and the processes fail. It prints the
// results and a table, and exits with code 1 if a check failed.
import { chosen, number, numbers, runSuite } from '../suite.js'
import { storms } from './faults.js'

await runSuite({
  script: 'test:chaos',
  names: Object.keys(storms),
  options: {
    modes: { usual: 'dual', help: 'single, dual, or both (default dual)' },
    parallel: { usual: '3', help: 'number of storms that run in parallel (default 3)' },
    seeds: { usual: '1', help: 'a range such as 1..10, or a list (default 1)' },
    seconds: { usual: '4', help: 'length of most storms (default 4)' },
    users: { usual: '60', help: 'simulated users of most storms, each with two tabs (default 60)' }
  },
  plays(only, { modes, seeds, seconds, users }) {
    const variants = numbers(seeds).flatMap(seed =>
      chosen(['single', 'dual'], modes).map(mode => ({ seed, mode, seconds: number(seconds), users: number(users) }))
    )
    return only.flatMap(name => variants.flatMap(variant => storms[name]?.(variant) ?? []))
  }
})
