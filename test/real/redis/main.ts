// Runs the real program with a real Redis that changes its master or moves its data: with sentinels, with two masters, and
// as a cluster. It prints the results and a table, and exits with code 1 if a check failed.
import type { SessionStore, StormVariant } from '../chaos/storm.js'
import { chosen, number, numbers, type Play, runSuite } from '../suite.js'
import { clusterScenarios } from './cluster-scenarios.js'
import { sentinelScenarios } from './sentinel-scenarios.js'

const scenarios: Readonly<Record<string, (variant: StormVariant) => Play[]>> = {
  ...sentinelScenarios,
  ...clusterScenarios
}

await runSuite({
  script: 'test:redis',
  names: Object.keys(scenarios),
  options: {
    seeds: { usual: '1', help: 'a range such as 1..3, or a list (default 1)' },
    modes: { usual: 'dual', help: 'single, dual, or both (default dual)' },
    stores: { usual: 'cookie,redis', help: 'cookie, redis, or both: where sessions are stored (default both)' },
    users: { usual: '30', help: 'simulated users, each with two tabs (default 30)' },
    parallel: { usual: '2', help: 'number of scenarios that run in parallel (default 2)' }
  },
  plays(only, { seeds, modes, stores, users }) {
    const variants = numbers(seeds).flatMap(seed =>
      chosen(['single', 'dual'], modes).flatMap(mode =>
        chosen<SessionStore>(['cookie', 'redis'], stores).map(
          (store): StormVariant => ({ seed, mode, store, users: number(users), processes: 3, timeLimitMs: 10_000 })
        )
      )
    )
    return only.flatMap(name => variants.flatMap(variant => scenarios[name]?.(variant) ?? []))
  }
})
