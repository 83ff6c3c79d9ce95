// Runs the real program with a real Redis that changes its master or moves its data: with sentinels, with two masters, and
// as a cluster. It prints the results and a table, and exits with code 1 if a check failed.
import { parseArgs } from 'node:util'
import { chosen, numbers, type Play, runSuite } from '../chaos/runner.js'
import { clusterFailover, halfMovedSlots, killedMaster, resharding } from './cluster-scenarios.js'
import {
  changeNames,
  masterChanges,
  restartDuringFailover,
  type SentinelVariant,
  twoMasters
} from './sentinel-scenarios.js'
import type { SessionStore, Variant } from './under-load.js'

const sentinelScenarios: Readonly<Record<string, (variant: SentinelVariant) => Play[]>> = {
  'master-changes': variant => changeNames.map(name => masterChanges(variant, name)),
  'restart-during-failover': variant => [restartDuringFailover(variant)],
  'two-masters': variant => [6, 12].map(seconds => twoMasters(variant, seconds))
}
const clusterScenarios: Readonly<Record<string, (variant: Variant) => Play>> = {
  'killed-master': killedMaster,
  'cluster-failover': clusterFailover,
  resharding,
  'half-moved-slots': halfMovedSlots
}
const names = [...Object.keys(sentinelScenarios), ...Object.keys(clusterScenarios)]

const usage = `Usage: npm run test:redis -- [options]

  --only NAME,NAME   the scenarios to run (default all): ${names.join(', ')}
  --seeds 1..3       a range or a list (default 1)
  --modes single     single, dual, or both (default dual)
  --stores redis     cookie, redis, or both: where sessions are stored (default both)
  --users 40         simulated users, each with two tabs (default 30)
  --parallel 1       number of scenarios that run in parallel (default 2)
  --without          also reports what happens without min-replicas-to-write
`

await runSuite(usage, () => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: names.join(',') },
      seeds: { type: 'string', default: '1' },
      modes: { type: 'string', default: 'dual' },
      stores: { type: 'string', default: 'cookie,redis' },
      users: { type: 'string', default: '30' },
      parallel: { type: 'string', default: '2' },
      without: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return undefined
  const [users = 0] = numbers(values.users)
  const variants = numbers(values.seeds).flatMap(seed =>
    chosen(['single', 'dual'], values.modes).flatMap(mode =>
      chosen<SessionStore>(['cookie', 'redis'], values.stores).map((store): Variant => ({ seed, mode, store, users }))
    )
  )
  const plays = chosen(names, values.only).flatMap(name =>
    variants.flatMap((variant): Play[] => {
      const inCluster = clusterScenarios[name]
      if (inCluster) return [inCluster(variant)]
      const withSentinel = [true, ...(values.without ? [false] : [])]
      return withSentinel.flatMap(needsReplica => sentinelScenarios[name]?.({ ...variant, needsReplica }) ?? [])
    })
  )
  return [{ plays, inParallel: numbers(values.parallel)[0] as number }]
})
