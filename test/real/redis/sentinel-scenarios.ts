// What happens to a Redis with sentinels.
import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../../helpers/scope.js'
import { type StormVariant, storm } from '../chaos/storm.js'
import type { Play } from '../suite.js'
import { createNetwork, environmentAt } from './network.js'
import { MAX_LAG_SECONDS, type SentinelRedis, startSentinelRedis } from './sentinel.js'

const ROUNDS = 2
// Longer than an old master needs until it follows the new one.
const BETWEEN_MS = 14_000
/**
 * An old master without replicas still accepts writes for `min-replicas-max-lag`, which it checks once a second. If a tab was closed
 * during a refresh in this time, its outdated cookie comes to another process, and the login is lost.
 */
const OLD_MASTER_ACCEPTS_MS = (MAX_LAG_SECONDS + 1) * 1000

/** A change of the master. Resolves with the new master. */
type Change = (redis: SentinelRedis) => ReturnType<SentinelRedis['master']>

const changes: Readonly<Record<string, Change>> = {
  'SENTINEL FAILOVER': redis => redis.failOver(),
  'kill -9 of the master': async redis => {
    const old = await redis.master()
    await old.kill()
    const master = await redis.promoted(old)
    await pause(1000)
    await old.restart()
    return master
  },
  'SIGSTOP of the master': async redis => {
    const old = await redis.master()
    old.pause()
    const master = await redis.promoted(old)
    await pause(2000)
    old.resume()
    return master
  }
}

export const sentinelScenarios: Readonly<Record<string, (variant: StormVariant) => Play[]>> = {
  'master-changes': variant => Object.entries(changes).map(([name, change]) => masterChanges(variant, name, change)),
  'two-masters': variant => [6, 12].map(seconds => twoMasters(variant, seconds))
}

function masterChanges(variant: StormVariant, name: string, change: Change): Play {
  const options = { ...variant, failure: `Sentinel: ${ROUNDS} × ${name}` }
  return storm(options, startSentinelRedis, async ({ report, random, outage }, redis) => {
    const durations: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await pause(random() * 2000)
      const start = performance.now()
      await outage(() => change(redis))
      durations.push(Math.round(performance.now() - start))
      await pause(BETWEEN_MS)
    }
    report.figures({ 'each change of the master, ms': durations.join(', ') })
  })
}

/**
 * The network separates the old master and one process from everything else. The other side gets a new master. A process
 * on that side restarts meanwhile.
 */
function twoMasters(variant: StormVariant, seconds: number): Play {
  const host = (slot: number) => `127.0.1.${slot + 1}`
  const options = {
    ...variant,
    failure: `Sentinel: two masters for ${seconds} s`,
    environment: (slot: number) => environmentAt(host(slot)),
    cutOff: { slot: 0, acceptsMs: OLD_MASTER_ACCEPTS_MS }
  }
  async function open(scope: Teardown) {
    const network = createNetwork(scope)
    return { ...(await startSentinelRedis(scope, network)), network }
  }
  return storm(options, open, async ({ stage, random, outage }, redis) => {
    const old = await redis.master()
    await outage(async () => {
      redis.network.separate(new Set([old.host, host(0)]))
      await redis.promoted(old)
      const promotedAt = performance.now()
      await pause(random() * 2000)
      await stage.fleet.end(1, 'SIGKILL')
      await stage.fleet.start(1)
      await pause(seconds * 1000 - (performance.now() - promotedAt))
      redis.network.mend()
    })
    await pause(BETWEEN_MS)
  })
}
