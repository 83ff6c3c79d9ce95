// Creates several stores that share a Redis, as several processes would have them.
import type { ExecutionContext } from 'ava'
import { parseRedisAddress } from '#src/config/redis-address.js'
import type { Coordination } from '#src/coordination/coordination.js'
import { createRedisCoordination, type RedisCoordinationParts } from '#src/coordination/redis.js'
import { openRedisClient } from '#src/coordination/redis-client.js'
import { timingOf } from '#src/coordination/timing.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { type CollectedLogs, collectLogs } from '../helpers/logs.js'

export interface Replica extends Coordination {
  readonly logs: CollectedLogs
}

// These limits are long, so that a slow machine is not mistaken for a failing Redis.
const PATIENT = {
  ...timingOf(60),
  commandMs: 20_000,
  startMs: 30_000,
  patienceMs: 30_000,
  waitMs: 30_000,
  settleMs: 0
}
/** These limits are short enough for tests of outages, and long enough for a machine that runs other tests at the same time. */
export const IMPATIENT = { commandMs: 1000, startMs: 5000, patienceMs: 3000, waitMs: 3000, settleMs: 500 }

type Options = Partial<Pick<RedisCoordinationParts, 'prefix' | 'whenAway' | 'now'>> & {
  readonly timing?: Partial<RedisCoordinationParts['timing']>
  readonly secret?: string
}

export async function startReplica(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  {
    prefix = 'platform-auth:test:',
    secret = 'a secret that replicas share',
    timing,
    whenAway = 'wait',
    now = Date.now
  }: Options = {}
): Promise<Replica> {
  const address = parseRedisAddress(url)
  if (!address) throw new Error(`${url} is not understood`)
  const logs = await collectLogs()
  const coordination = createRedisCoordination({
    open: events => openRedisClient(address, events),
    prefix,
    keyring: createKeyring([secret]),
    now,
    log: logs.log,
    whenAway,
    timing: { ...PATIENT, ...timing }
  })
  t.teardown(() => coordination.close())
  return { ...coordination, logs }
}

export async function startReplicas(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  options: Options = {}
): Promise<[Replica, Replica]> {
  return [await startReplica(t, url, options), await startReplica(t, url, options)]
}
