import type { Config } from '../config/settings.js'
import type { RedisCommands } from './redis-client.js'
import { reasonOf } from './redis-errors.js'
import { createRedisScripts, NO_RUN } from './redis-scripts.js'
import { newRunId } from './result-seal.js'
import { type RedisNames, withRedis } from './with-redis.js'

const KEY_TTL_MS = 1000

/**
 * Runs the Redis commands of a refresh and a logout once, in the Redis of `config`. Only the `check` command uses this
 * function. Returns undefined if all commands succeed. Otherwise returns the reason, such as `timeout`, a Node error
 * code, or the code of a Redis error reply.
 * @param timeoutMs the time limit of the whole call
 */
export async function redisProblem(config: Config, timeoutMs: number): Promise<string | undefined> {
  try {
    await withRedis(config, timeoutMs, ({ commands }, names) => runEveryCommand(commands, names))
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

async function runEveryCommand(commands: RedisCommands, { prefix, channel }: RedisNames): Promise<void> {
  const scripts = createRedisScripts(prefix, channel, { leaseMs: KEY_TTL_MS, stalledMs: KEY_TTL_MS })
  const run = newRunId()
  const key = `check:${run}`
  await scripts.acquire(key, run, NO_RUN)(commands)
  await scripts.extend(key, run, NO_RUN)(commands)
  await scripts.checkpoint(key, run, KEY_TTL_MS)(commands)
  await scripts.finish(key, run, NO_RUN, `${run}-`, KEY_TTL_MS)(commands)
  await scripts.peek(key)(commands)
  await scripts.expire(key, KEY_TTL_MS)(commands)
  await commands.set(`${prefix}mark:${key}`, '1', 'PX', KEY_TTL_MS)
  await commands.pttl(`${prefix}mark:${key}`)
  await commands.publish(channel, key)
}
