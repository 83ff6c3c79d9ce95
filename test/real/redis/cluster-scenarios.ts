// What happens to a Redis Cluster.
import { setTimeout as pause } from 'node:timers/promises'
import { type Load, type StormVariant, storm } from '../chaos/storm.js'
import type { Play } from '../suite.js'
import { type ClusterRedis, startClusterRedis } from './cluster.js'

const ROUNDS = 2
const BETWEEN_MS = 8000
const MOVED_SLOTS = 100
const HALF_MOVED_MS = 10_000

export const clusterScenarios: Readonly<Record<string, (variant: StormVariant) => Play[]>> = {
  'killed-master': inCluster(`${ROUNDS} × kill -9 of a master`, async (load, redis) => {
    for (let round = 0; round < ROUNDS; round++) {
      const master = await redis.anyMaster(load.random)
      const replica = await redis.replicaOf(master)
      await load.outage(async () => {
        await master.kill()
        await redis.promoted(replica)
        await pause(1000)
        await master.restart()
      })
      await pause(BETWEEN_MS)
    }
  }),
  // Each slot keeps half of its keys in the old place for a while. Only users whose sessions are in these slots may notice it, and
  // each session has at least one key.
  'half-moved-slots': inCluster(`${MOVED_SLOTS} slots move slowly`, async ({ report, tally, random }, redis) => {
    const { from, to, slots, keys } = await redis.chooseSlots(random, MOVED_SLOTS)
    for (const slot of slots) {
      await redis.beginMove(slot, from, to)
      await redis.moveKeys(slot, from, to, 1)
    }
    await pause(HALF_MOVED_MS)
    for (const slot of slots) await redis.endMove(slot, from, to)
    await pause(BETWEEN_MS)
    report.figures({ 'keys in the slots that move': keys, 'users who got a 503 meanwhile': tally.refused.size })
    const what = 'only users with sessions in the slots that move get a 503'
    report.check(what, tally.refused.size <= keys, `${tally.refused.size} users, ${keys} keys`)
  })
}

function inCluster(failure: string, fault: (load: Load, redis: ClusterRedis) => Promise<void>) {
  return (variant: StormVariant) => [storm({ ...variant, failure: `Cluster: ${failure}` }, startClusterRedis, fault)]
}
