import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import { within } from '../support/within.js'
import { channelOf, prefixOf } from './index.js'
import { openRedisClient, type RedisClient } from './redis-client.js'

/** The prefix of our keys, and the channel to which the client subscribes. */
export interface RedisNames {
  readonly prefix: string
  readonly channel: string
}

/**
 * Connects to the Redis of `config`, calls `use`, and closes the connection. Only the `check` command uses this
 * function.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection and of `use`
 */
export async function withRedis<T>(
  config: Config,
  timeoutMs: number,
  use: (client: RedisClient, names: RedisNames) => Promise<T>
): Promise<T> {
  const address = parseRedisAddress(config.redisUrl ?? '')
  if (!address) throw new TypeError('redisUrl is not the address of a Redis server')
  const prefix = prefixOf(config)
  const channel = channelOf(prefix)
  let opening: Promise<RedisClient> | undefined
  const ready = new Promise<void>((onReady, onError) => {
    opening = openRedisClient(address, { channels: [channel], onReady, onError, onLost() {}, onMessage() {} })
    opening.catch(onError)
  })
  async function connectAndUse() {
    await ready
    return use((await opening) as RedisClient, { prefix, channel })
  }
  try {
    return await within(timeoutMs, connectAndUse())
  } finally {
    await opening?.then(client => client.close())
  }
}
