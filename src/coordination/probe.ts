import { randomBytes } from 'node:crypto'
import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import { prefixOf } from './index.js'
import { openRedisClient, type RedisClient, type RedisCommands } from './redis-client.js'
import { reasonOf } from './redis-link.js'
import { createRedisResults, NO_RUN, RUN_LENGTH } from './redis-results.js'
import { within } from './within.js'

const KEPT_MS = 1000

/**
 * Does once, in the Redis of `config`, all that a renewal and a logout do there. Gives undefined when that went well,
 * or one word for why not: `timeout`, a code of Node's, or the first word of what Redis answered.
 */
export async function redisTrouble(config: Config, timeoutMs: number): Promise<string | undefined> {
  const address = parseRedisAddress(config.redisUrl ?? '')
  if (!address) throw new TypeError('redisUrl is no address of a Redis')
  const prefix = prefixOf(config)
  const channel = `${prefix}done`
  let opening: Promise<RedisClient> | undefined
  const ready = new Promise<void>((onReady, onTrouble) => {
    opening = openRedisClient(address, { channel, onReady, onTrouble, onLost() {}, onMessage() {} })
    opening.catch(onTrouble)
  })
  async function useIt() {
    await ready
    const client = (await opening) as RedisClient
    await rehearse(client.commands, prefix, channel)
  }
  try {
    await within(timeoutMs, useIt())
    return undefined
  } catch (error) {
    return reasonOf(error)
  } finally {
    await opening?.then(client => client.close())
  }
}

async function rehearse(commands: RedisCommands, prefix: string, channel: string): Promise<void> {
  const results = createRedisResults(prefix, channel, KEPT_MS)
  const run = randomBytes(RUN_LENGTH).toString('base64url').slice(0, RUN_LENGTH)
  const key = `check:${run}`
  await results.begin(key, run, NO_RUN)(commands)
  await results.leave(key, run, KEPT_MS)(commands)
  await results.finish(key, run, NO_RUN, run, KEPT_MS)(commands)
  await commands.set(`${prefix}mark:${key}`, '1', 'PX', KEPT_MS)
  await commands.pttl(`${prefix}mark:${key}`)
}
