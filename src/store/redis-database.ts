import type { Config } from '../config/settings.js'
import { within } from '../support/clock.js'
import { isRefusedDatabase, openRedisClient, type RedisClient, reasonOf } from './redis-client.js'

/** Redis does not let this server use the database of `redisUrl`. */
export class RedisDatabaseError extends Error {
  override readonly name = 'RedisDatabaseError'
}

const TIMEOUT_MS = 2000

/**
 * Rejects if Redis refuses to select the database of `redisUrl`, because another attempt would not help. Resolves if the
 * database can be used, or if Redis cannot be reached now. The server then starts, and tries to connect again and again.
 */
export async function requireDatabase({ redisUrl, redisTls }: Pick<Config, 'redisUrl' | 'redisTls'>): Promise<void> {
  if (!redisUrl || redisUrl.database === 0) return
  let opening: Promise<RedisClient> | undefined
  const firstError = new Promise<Error | undefined>(resolve => {
    const events = { channels: [], onReady: () => resolve(undefined), onError: resolve, onLost() {}, onMessage() {} }
    opening = openRedisClient(redisUrl, events, redisTls)
    opening.catch(resolve)
  })
  try {
    const error = await within(TIMEOUT_MS, firstError).catch(() => undefined)
    if (!isRefusedDatabase(error) || reasonOf(error) === 'NOAUTH') return
    throw new RedisDatabaseError(
      `Redis refuses to select database ${redisUrl.database} of redisUrl (${reasonOf(error)}). ${databaseAdvice(reasonOf(error))}`,
      { cause: error }
    )
  } finally {
    await opening?.then(
      client => client.close(),
      () => {}
    )
  }
}

/** @param reason the code of the error reply */
export function databaseAdvice(reason: string): string {
  return reason === 'NOPERM'
    ? 'Give the user of redisUrl the right +select, or use database 0.'
    : 'Choose a lower database number, or raise the setting databases of Redis. A cluster has only database 0.'
}
