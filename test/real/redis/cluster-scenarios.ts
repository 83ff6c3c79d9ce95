// What happens to a Redis Cluster.
import { setTimeout as pause } from 'node:timers/promises'
import type { RedisServer } from '../../helpers/redis-server.js'
import type { Play } from '../suite.js'
import { type ClusterRedis, startClusterRedis } from './cluster.js'
import { type Load, underLoad, type Variant } from './under-load.js'

const ROUNDS = 2
const BETWEEN_MS = 8000
const AFTER_MS = 3000
const MOVED_SLOTS = 100
const HALF_MOVED_MS = 10_000

type Fault = (load: Load, redis: ClusterRedis) => Promise<void>

export const clusterScenarios: Readonly<Record<string, (variant: Variant) => Play>> = {
  'killed-master': inRounds('kill -9 of a master', async (load, redis) => {
    const master = await anyMaster(load, redis)
    const replica = await redis.replicaOf(master)
    await load.outage(async () => {
      await master.kill()
      await redis.promoted(replica)
      await pause(1000)
      await master.restart()
    })
  }),
  'cluster-failover': inRounds('CLUSTER FAILOVER of each master', async (load, redis) => {
    for (const master of await redis.masters()) {
      const replica = await redis.replicaOf(master)
      await load.outage(async () => {
        await replica.admin.call('CLUSTER', 'FAILOVER')
        await redis.promoted(replica)
      })
      await pause(1000)
    }
  }),
  // Slots move while their sessions are used. This concerns these sessions only.
  resharding: withMovedSlots('move', async (redis, { from, to, slots }) => {
    for (const slot of slots) {
      await redis.beginMove(slot, from, to)
      await redis.endMove(slot, from, to)
      await pause(20)
    }
  }),
  // Each slot keeps half of its keys in the old place for a while.
  'half-moved-slots': withMovedSlots('stay half-moved', async (redis, { from, to, slots }) => {
    for (const slot of slots) {
      await redis.beginMove(slot, from, to)
      await redis.moveKeys(slot, from, to, 1)
    }
    await pause(HALF_MOVED_MS)
    for (const slot of slots) await redis.endMove(slot, from, to)
  })
}

function inRounds(failure: string, fault: Fault) {
  return withCluster(`${ROUNDS} × ${failure}`, async (load, redis) => {
    for (let round = 0; round < ROUNDS; round++) {
      await fault(load, redis)
      await pause(BETWEEN_MS)
    }
  })
}

type Move = Awaited<ReturnType<typeof chooseSlots>>

/** Users whose sessions are in other slots must not notice anything. Each session has at least one key. */
function withMovedSlots(failure: string, move: (redis: ClusterRedis, slots: Move) => Promise<void>) {
  return withCluster(`${MOVED_SLOTS} slots ${failure}`, async (load, redis) => {
    const { report, tally } = load
    const slots = await chooseSlots(load, redis)
    await move(redis, slots)
    await pause(BETWEEN_MS)
    const { keys } = slots
    report.figures({ 'keys in the slots that move': keys, 'users who got a 503 meanwhile': tally.refused.size })
    const what = 'only users with sessions in the slots that move get a 503'
    report.check(what, tally.refused.size <= keys, `${tally.refused.size} users, ${keys} keys`)
  })
}

/** Chooses neighbouring slots of a master, among them some that have keys. */
async function chooseSlots(load: Load, redis: ClusterRedis) {
  const from = await anyMaster(load, redis)
  const [to] = (await redis.masters()).filter(master => master !== from) as [RedisServer]
  const counts = await redis.keysBySlot(from)
  const used = [...counts.keys()].sort((a, b) => a - b)
  const middle = used[Math.floor(load.random() * used.length)] ?? 0
  const [lowest, highest] = [used[0] ?? 0, used.at(-1) ?? 0]
  const first = Math.max(lowest, Math.min(middle, highest - MOVED_SLOTS + 1))
  const slots = Array.from({ length: MOVED_SLOTS }, (_, index) => first + index)
  const keys = slots.reduce((sum, slot) => sum + (counts.get(slot) ?? 0), 0)
  return { from, to, slots, keys }
}

async function anyMaster({ random }: Load, redis: ClusterRedis): Promise<RedisServer> {
  const masters = await redis.masters()
  return masters[Math.floor(random() * masters.length)] as RedisServer
}

function withCluster(failure: string, fault: Fault): (variant: Variant) => Play {
  return variant =>
    underLoad({ ...variant, failure: `Cluster: ${failure}` }, startClusterRedis, async (load, redis) => {
      await fault(load, redis)
      await pause(AFTER_MS)
    })
}
