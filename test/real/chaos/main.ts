// The chaos suite runs the real program while the provider, Redis, the network and the processes fail. It prints the
// results and a table, and exits with code 1 if a check failed.
import { parseArgs } from 'node:util'
import { providerOutage, redisOutage } from './outages.js'
import { disconnectedOwner, flushedRedis, killedOwner, stoppedOwner } from './owner-scenarios.js'
import { brokenResponse, lateResponse, lostResponse, quota } from './provider-scenarios.js'
import { fullRedis, promotion, unusableRedis } from './redis-scenarios.js'
import { chosen, numbers, type Play, runSuite } from './runner.js'
import { mixedSecrets, parallelRequests, redisSessions } from './session-scenarios.js'
import type { Options } from './stage.js'
import { combined, storms } from './storm.js'
import { troubleKinds } from './trouble.js'

type Scenarios = Readonly<Record<string, (options: Options) => Play[]>>

/** These scenarios keep the machine busy and run one at a time. */
const busy: Scenarios = {
  storm: options => storms(options, trouble => trouble !== 'kill'),
  combined,
  thousand: parallelRequests,
  'provider-outage': providerOutage,
  // It comes last, when the machine has less other work, because it counts what is refreshed within a few seconds.
  quota
}

/** These scenarios mostly wait, and several of them run in parallel. The longest come first. */
const quiet: Scenarios = {
  // After some seconds with load, these storms wait until the lease of a killed process ends (65 s).
  storm: options => storms(options, trouble => trouble === 'kill'),
  'redis-outage': redisOutage,
  'killed-owner': killedOwner,
  'stopped-owner': stoppedOwner,
  'flushed-redis': flushedRedis,
  'disconnected-owner': disconnectedOwner,
  'unusable-redis': unusableRedis,
  'full-redis': fullRedis,
  promotion,
  'redis-sessions': redisSessions,
  'late-response': lateResponse,
  'broken-response': brokenResponse,
  'lost-response': lostResponse,
  'mixed-secrets': mixedSecrets
}
const names = [...new Set([...Object.keys(busy), ...Object.keys(quiet)])]

// The short run is for every change, the full run for a release.
const SHORT = { processes: '4', modes: 'dual', troubles: 'redis,kill', seconds: '4', users: '60' }
const FULL = { processes: '1,4', modes: 'single,dual', troubles: 'redis,kill,restart', seconds: '10', users: '120' }

const usage = `Usage: npm run test:chaos -- [options]

  --only storm       the scenarios to run (default all): ${names.join(', ')}
  --full             all variants at their full length
  --modes dual       single, dual, or both (default ${SHORT.modes}, with --full ${FULL.modes})
  --parallel 4       number of scenarios that mostly wait and run in parallel (default 6)

For storms:
  --seeds 1..10      a range or a list (default 1)
  --processes 1,4    one server process, four, or both (default ${SHORT.processes}, with --full ${FULL.processes})
  --troubles redis   other failures with four processes: ${troubleKinds.join(', ')}
                     (default ${SHORT.troubles}, with --full ${FULL.troubles})
  --seconds 30       length of each storm (default ${SHORT.seconds}, with --full ${FULL.seconds})
  --users 200        simulated users, each with three tabs (default ${SHORT.users}, with --full ${FULL.users})
`

await runSuite(usage, () => {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1' },
      processes: { type: 'string' },
      modes: { type: 'string' },
      troubles: { type: 'string' },
      seconds: { type: 'string' },
      users: { type: 'string' },
      only: { type: 'string', default: names.join(',') },
      parallel: { type: 'string', default: '6' },
      full: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return undefined
  const given = { ...(values.full ? FULL : SHORT), ...values }
  const options: Options = {
    seeds: numbers(values.seeds),
    processes: numbers(given.processes),
    modes: chosen(['single', 'dual'], given.modes),
    troubles: chosen(troubleKinds, given.troubles),
    seconds: numbers(given.seconds)[0] as number,
    users: numbers(given.users)[0] as number,
    full: values.full
  }
  const only = chosen(names, values.only)
  const playsOf = (scenarios: Scenarios) => only.flatMap(name => scenarios[name]?.(options) ?? [])
  return [
    { plays: playsOf(busy), inParallel: 1 },
    { plays: playsOf(quiet), inParallel: numbers(values.parallel)[0] as number }
  ]
})
