/** The one place that reads whether a Redis was configured. */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import type { Keyring } from '../sealing/keyring.js'
import type { Coordination } from './coordination.js'
import { createMemoryCoordination } from './memory.js'
import { createRedisCoordination } from './redis.js'
import { openRedisClient } from './redis-client.js'

export interface CoordinationParts {
  readonly keyring: Keyring
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/** Can be used at once: Redis, when there is one, is connected in the background. */
export function createCoordination(config: Config, { keyring, now, log }: CoordinationParts): Coordination {
  const { redisUrl } = config
  if (redisUrl === undefined) return createMemoryCoordination(now)
  const address = parseRedisAddress(redisUrl)
  if (!address) throw new TypeError('redisUrl is no address of a Redis')
  return createRedisCoordination({
    open: events => openRedisClient(address, events),
    prefix: prefixOf(config),
    sealer: keyring.sealer('shared results'),
    now,
    log
  })
}

/** What all keys begin with. Replicas of one deployment agree in it; two applications, or one in both modes, do not. */
export function prefixOf({ mode, platform }: Config): string {
  const identity = JSON.stringify([platform.clientId, platform.issuer, platform.tokenEndpoint, mode])
  return `platform-auth:${createHash('sha256').update(identity).digest('base64url').slice(0, 10)}:`
}
