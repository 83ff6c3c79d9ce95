import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import { within } from '../support/within.js'
import { prefixOf } from './index.js'
import { openRedisClient, type RedisClient, type RedisCommands } from './redis-client.js'
import { reasonOf } from './redis-errors.js'
import { createRedisScripts, NO_RUN } from './redis-scripts.js'
import { newRunId } from './result-seal.js'

const KEPT_MS = 1000

/**
 * Does everything once that a refresh and a logout do in the Redis of `config`. Returns undefined if that worked, otherwise
 * one word for the reason: `timeout`, an error code of Node's, or the code of Redis's answer.
 */
export async function redisTrouble(config: Config, timeoutMs: number): Promise<string | undefined> {
  const address = parseRedisAddress(config.redisUrl ?? '')
  if (!address) throw new TypeError('redisUrl is no address of a Redis')
  const prefix = prefixOf(config)
  const channel = `${prefix}wake:check`
  let opening: Promise<RedisClient> | undefined
  const ready = new Promise<void>((onReady, onTrouble) => {
    opening = openRedisClient(address, { channels: [channel], onReady, onTrouble, onLost() {}, onMessage() {} })
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
  const scripts = createRedisScripts(prefix, channel, { leaseMs: KEPT_MS, stalledMs: KEPT_MS })
  const run = newRunId()
  const key = `check:${run}`
  await scripts.acquire(key, run, NO_RUN)(commands)
  await scripts.extend(key, run, NO_RUN)(commands)
  await scripts.checkpoint(key, run, KEPT_MS)(commands)
  await scripts.finish(key, run, NO_RUN, `${run}-`, KEPT_MS)(commands)
  await scripts.peek(key)(commands)
  await scripts.expire(key, KEPT_MS)(commands)
  await commands.set(`${prefix}mark:${key}`, '1', 'PX', KEPT_MS)
  await commands.pttl(`${prefix}mark:${key}`)
  await commands.publish(channel, key)
}
