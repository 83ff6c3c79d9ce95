// What happens to a Redis with sentinels.
import { setTimeout as pause } from 'node:timers/promises'
import type { Play } from '../suite.js'
import { createNetwork, environmentAt } from './network.js'
import { type SentinelRedis, startSentinelRedis } from './sentinel.js'
import { type Load, type LoadOptions, underLoad, type Variant } from './under-load.js'

interface SentinelVariant extends Variant {
  /** Redis has `min-replicas-to-write 1`. */
  readonly needsReplica: boolean
}

const ROUNDS = 3
// Longer than an old master needs until it follows the new one.
const BETWEEN_MS = 14_000
const AFTER_MS = 3000

/** A change of the master. Resolves with the new master. */
type Change = (redis: SentinelRedis) => ReturnType<SentinelRedis['master']>

const changes = {
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
} satisfies Record<string, Change>

type ChangeName = keyof typeof changes

export const sentinelScenarios: Readonly<Record<string, (variant: SentinelVariant) => Play[]>> = {
  'master-changes': variant => (Object.keys(changes) as ChangeName[]).map(name => masterChanges(variant, name)),
  'restart-during-failover': variant => [restartDuringFailover(variant)],
  'two-masters': variant => [6, 12].map(seconds => twoMasters(variant, seconds))
}

function masterChanges(variant: SentinelVariant, name: ChangeName): Play {
  return withSentinel(variant, `Sentinel: ${ROUNDS} × ${name}`, async (load, redis) => {
    const durations: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await pause(load.random() * 2000)
      const start = performance.now()
      await load.outage(() => changes[name](redis))
      durations.push(Math.round(performance.now() - start))
      await pause(BETWEEN_MS)
    }
    load.report.figures({ 'each change of the master, ms': durations.join(', ') })
  })
}

/** A process is killed up to 1.5 s before or after the promotion, and starts again up to 3 s later. */
function restartDuringFailover(variant: SentinelVariant): Play {
  return withSentinel(variant, `Sentinel: ${ROUNDS} × a process restarts during a failover`, async (load, redis) => {
    const { stage, random } = load
    const remarks: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const slot = 1 + (round % 2)
      const [aheadMs, absentMs] = [(random() - 0.5) * 3000, random() * 3000]
      const killed = async () => {
        await stage.fleet.kill(slot)
        await pause(absentMs)
        await stage.fleet.start(slot)
      }
      await load.outage(async () => {
        if (aheadMs < 0) {
          const restarted = killed()
          await pause(-aheadMs)
          await redis.failOver()
          await restarted
        } else {
          await redis.failOver()
          await pause(aheadMs)
          await killed()
        }
      })
      remarks.push(`killed ${Math.round(aheadMs)} ms after the promotion, absent for ${Math.round(absentMs)} ms`)
      await pause(BETWEEN_MS)
    }
    for (const remark of remarks) load.report.note(remark)
  })
}

/**
 * The network separates the old master and one process from everything else. The other side gets a new master. A process
 * on that side restarts meanwhile.
 */
function twoMasters(variant: SentinelVariant, seconds: number): Play {
  const host = (slot: number) => `127.0.1.${slot + 1}`
  const options: LoadOptions = {
    ...variant,
    failure: `Sentinel: two masters for ${seconds} s${named(variant)}`,
    isRequired: variant.needsReplica,
    environment: slot => environmentAt(host(slot)),
    cutOffSlot: 0
  }
  return underLoad(
    options,
    async scope => {
      const network = createNetwork(scope)
      return { ...(await startSentinelRedis(scope, { ...variant, network })), network }
    },
    async ({ stage, random, outage }, redis) => {
      const old = await redis.master()
      await outage(async () => {
        redis.network.separate(new Set([old.host, host(0)]))
        await redis.promoted(old)
        const promotedAt = performance.now()
        await pause(random() * 2000)
        await stage.fleet.kill(1)
        await stage.fleet.start(1)
        await pause(seconds * 1000 - (performance.now() - promotedAt))
        redis.network.mend()
      })
      await pause(BETWEEN_MS)
    }
  )
}

function withSentinel(
  variant: SentinelVariant,
  failure: string,
  fault: (load: Load, redis: SentinelRedis) => Promise<void>
): Play {
  const options = { ...variant, failure: failure + named(variant), isRequired: variant.needsReplica }
  const open = (scope: Parameters<typeof startSentinelRedis>[0]) => startSentinelRedis(scope, variant)
  return underLoad(options, open, async (load, redis) => {
    await fault(load, redis)
    await pause(AFTER_MS)
  })
}

function named({ needsReplica }: SentinelVariant): string {
  return needsReplica ? ' with min-replicas-to-write 1' : ' without min-replicas-to-write'
}
