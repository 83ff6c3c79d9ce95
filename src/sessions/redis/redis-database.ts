/** Checks at the start that Redis lets this server use the database of `redis.url`. */
import { within } from '../../base/clock.js'
import type { Config } from '../../config/settings.js'
import { openRedisClient, type RedisClient } from './redis-client.js'
import { isRefusedDatabase, reasonOf } from './redis-errors.js'

/** Thrown if Redis refuses to select the database of `redis.url`. */
export class RedisDatabaseError extends Error {
  override readonly name = 'RedisDatabaseError'
}

const SELECT_TIMEOUT_MS = 2000

/**
 * Rejects if Redis refuses to select the database of `redis.url`, because another attempt would not help. Resolves if the database
 * can be used. Also resolves if Redis is unreachable, because the server can start now and connect later.
 */
export async function requireDatabase({ redis }: Pick<Config, 'redis'>): Promise<void> {
  const { url } = redis
  if (!url || url.database === 0) return
  let opening: Promise<RedisClient> | undefined
  const firstError = new Promise<Error | undefined>(resolve => {
    const events = { channels: [], onReady: () => resolve(undefined), onError: resolve, onLost() {}, onMessage() {} }
    opening = openRedisClient(url, events, redis)
    opening.catch(resolve)
  })
  try {
    const error = await within(SELECT_TIMEOUT_MS, firstError).catch(() => undefined)
    if (!isRefusedDatabase(error) || reasonOf(error) === 'NOAUTH') return
    throw new RedisDatabaseError(
      `Redis refuses to select database ${url.database} of redis.url (${reasonOf(error)}). ${databaseAdvice(reasonOf(error))}`,
      { cause: error }
    )
  } finally {
    const client = await opening?.catch(() => undefined)
    await client?.close()
  }
}

/** @param reason the code of the error reply */
export function databaseAdvice(reason: string): string {
  return reason === 'NOPERM'
    ? 'Give the user of redis.url the right +select, or use database 0.'
    : 'Choose a lower database number, or increase "databases" in the configuration of Redis. A cluster has only database 0.'
}
