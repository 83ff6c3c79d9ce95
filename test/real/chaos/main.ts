// The chaos suite runs the real program while the provider, Redis, the network and the processes fail. It prints the
// results and a table, and exits with code 1 if a check failed.

import { chosen, number, numbers, type Play, runSuite } from '../suite.js'
import { providerOutage, redisOutage } from './outages.js'
import { disconnectedOwner, flushedRedis, killedOwner, stoppedOwner } from './owner-scenarios.js'
import { brokenResponse, lateResponse, lostResponse, quota } from './provider-scenarios.js'
import { fullRedis, promotion, unusableRedis } from './redis-scenarios.js'
import { redisSessions } from './session-scenarios.js'
import type { Options } from './stage.js'
import { combined, storms } from './storm.js'
import { troubleKinds } from './trouble.js'

type Scenarios = Readonly<Record<string, (options: Options) => Play[]>>

/** These scenarios keep the machine busy and run one at a time. */
const busy: Scenarios = {
  storm: options => storms(options, trouble => trouble !== 'kill'),
  combined,
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
  'lost-response': lostResponse
}
const names = [...new Set([...Object.keys(busy), ...Object.keys(quiet)])]

// The short run is for every change, the full run for a release.
const SHORT = { processes: '4', modes: 'dual', troubles: 'redis,kill', seconds: '4', users: '60' }
const FULL = { processes: '1,4', modes: 'single,dual', troubles: 'redis,kill,restart', seconds: '10', users: '120' }

await runSuite({
  script: 'test:chaos',
  names,
  options: {
    full: { usual: false, help: 'all variants at their full length' },
    modes: { usual: '', help: `single, dual, or both (default ${SHORT.modes}, with --full ${FULL.modes})` },
    parallel: { usual: '6', help: 'number of scenarios that mostly wait and run in parallel (default 6)' },
    seeds: { usual: '1', help: 'of storms: a range such as 1..10, or a list (default 1)' },
    processes: {
      usual: '',
      help: `of storms: one server process, four, or both (default ${SHORT.processes}, with --full ${FULL.processes})`
    },
    troubles: {
      usual: '',
      help: `other failures in storms with four processes: ${troubleKinds.join(', ')} (default ${SHORT.troubles}, with --full ${FULL.troubles})`
    },
    seconds: { usual: '', help: `length of each storm (default ${SHORT.seconds}, with --full ${FULL.seconds})` },
    users: {
      usual: '',
      help: `simulated users of storms, each with three tabs (default ${SHORT.users}, with --full ${FULL.users})`
    }
  },
  plays(only, { full, seeds, parallel, ...given }) {
    const preset = full ? FULL : SHORT
    const options: Options = {
      seeds: numbers(seeds),
      processes: numbers(given.processes || preset.processes),
      modes: chosen(['single', 'dual'], given.modes || preset.modes),
      troubles: chosen(troubleKinds, given.troubles || preset.troubles),
      seconds: number(given.seconds || preset.seconds),
      users: number(given.users || preset.users),
      full
    }
    const playsOf = (scenarios: Scenarios) => only.flatMap(name => scenarios[name]?.(options) ?? [])
    return [
      { plays: playsOf(busy), inParallel: 1 },
      { plays: playsOf(quiet), inParallel: number(parallel) }
    ]
  }
})
