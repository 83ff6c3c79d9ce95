// Runs the real program with a real Redis that changes its master or moves its data: with sentinels, with two masters, and
// as a cluster. It prints the results and a table, and exits with code 1 if a check failed.
import { parseArgs } from 'node:util'
import { chosen, numbers } from '../chaos/options.js'
import { type Play, playAll } from '../chaos/play-all.js'
import type { Report } from '../chaos/report.js'
import { clusterFailover, halfMovedSlots, killedMaster, resharding } from './cluster-scenarios.js'
import {
  changeNames,
  masterChanges,
  restartDuringFailover,
  type SentinelVariant,
  twoMasters
} from './sentinel-scenarios.js'
import type { SessionStore, Variant } from './under-load.js'

const sentinelScenarios: Readonly<
  Record<string, readonly ((report: Report, variant: SentinelVariant) => Promise<void>)[]>
> = {
  'master-changes': changeNames.map(name => (report, variant) => masterChanges(report, variant, name)),
  'restart-during-failover': [restartDuringFailover],
  'two-masters': [6, 12].map(seconds => (report, variant) => twoMasters(report, variant, seconds))
}
const clusterScenarios: Readonly<Record<string, (report: Report, variant: Variant) => Promise<void>>> = {
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
  --people 40        simulated browsers, each with two tabs (default 30)
  --at-once 1        number of scenarios that run at the same time (default 2)
  --without          also reports what happens without min-replicas-to-write
`

async function run(): Promise<number> {
  const print = (text: string) => process.stdout.write(text)
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: names.join(',') },
      seeds: { type: 'string', default: '1' },
      modes: { type: 'string', default: 'dual' },
      stores: { type: 'string', default: 'cookie,redis' },
      people: { type: 'string', default: '30' },
      'at-once': { type: 'string', default: '2' },
      without: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) {
    print(usage)
    return 0
  }
  const [people = 0] = numbers(values.people)
  const variants = numbers(values.seeds).flatMap(seed =>
    chosen(['single', 'dual'], values.modes).flatMap(mode =>
      chosen<SessionStore>(['cookie', 'redis'], values.stores).map((store): Variant => ({ seed, mode, store, people }))
    )
  )
  const plays = chosen(names, values.only).flatMap(name =>
    variants.flatMap((variant): Play[] => {
      const inCluster = clusterScenarios[name]
      if (inCluster) return [report => inCluster(report, variant)]
      return (sentinelScenarios[name] ?? []).flatMap(play =>
        (values.without ? [true, false] : [true]).map(
          needsReplica => report => play(report, { ...variant, needsReplica })
        )
      )
    })
  )
  return playAll([{ plays, atOnce: Number(values['at-once']) }], print)
}

process.exitCode = await run().catch((error: Error) => {
  process.stderr.write(`${error.message}\n\n${usage}`)
  return 2
})
