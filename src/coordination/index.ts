/** Chooses the store: Redis if `redisUrl` is set, otherwise the memory of this process. */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import type { Keyring } from '../sealing/keyring.js'
import type { Coordination } from './coordination.js'
import { createMemoryCoordination } from './memory.js'
import { createRedisCoordination } from './redis.js'
import { openRedisClient } from './redis-client.js'
import { timingOf } from './timing.js'

export interface CoordinationParts {
  readonly keyring: Keyring
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
}

/** Creates the store and returns at once. The connection to Redis opens in the background, and calls wait for it. */
export function createCoordination(config: Config, { keyring, now, log }: CoordinationParts): Coordination {
  const { redisUrl, redisAway, platform } = config
  const timing = timingOf(platform.timeoutSeconds)
  if (redisUrl === undefined) return createMemoryCoordination(now, timing)
  const address = parseRedisAddress(redisUrl)
  if (!address) throw new TypeError('redisUrl is not the address of a Redis server')
  return createRedisCoordination({
    open: events => openRedisClient(address, events),
    prefix: prefixOf(config),
    keyring,
    now,
    log,
    whenAway: redisAway,
    timing
  })
}

/**
 * Returns the prefix of all Redis keys. It is derived from the client id, the provider and the mode. All replicas of a
 * deployment therefore have the same prefix, and other applications can use the same Redis without a conflict.
 */
export function prefixOf({ mode, platform }: Config): string {
  const identity = JSON.stringify([platform.clientId, platform.issuer, platform.tokenEndpoint, mode])
  return `platform-auth:${createHash('sha256').update(identity).digest('base64url').slice(0, 10)}:`
}
