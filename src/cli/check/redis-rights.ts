/** Runs the Redis commands of the server one by one, to find out which of them Redis refuses. */
import { randomBytes } from 'node:crypto'
import type { RedisUrl } from '../../config/redis-url.js'
import type { Config } from '../../config/settings.js'
import { isRefusedDatabase, reasonOf } from '../../store/redis-client.js'
import { type CheckedRedis, withRedis } from './redis-state.js'

/** The names in the arguments of the commands below. */
interface Names {
  /** The key of the commands that write. */
  readonly key: string
  readonly channel: string
  /** Returns a key that does not exist. Different keys show that the Redis of one address is a node of a cluster. */
  readonly otherKey: () => string
}

const SCRIPT = 'return 1'
// Redis answers NOSCRIPT to a user who may use EVALSHA.
const UNKNOWN_SCRIPT = '0'.repeat(40)
const KEY_TTL_MS = 1000

type Command = readonly [name: string, args: (names: Names) => readonly (string | number)[]]

/**
 * The commands of the server (src/store) and of its scripts, in an order that leaves no key behind. SUBSCRIBE is missing, because
 * it needs the connection for messages.
 */
export const serverCommands: readonly Command[] = [
  ['PING', () => []],
  ['EVAL', ({ otherKey }) => [SCRIPT, 1, otherKey()]],
  ['EVALSHA', ({ otherKey }) => [UNKNOWN_SCRIPT, 1, otherKey()]],
  ['TIME', () => []],
  ['HSET', ({ key }) => [key, 'e', '1', 'r', '1']],
  ['PEXPIRE', ({ key }) => [key, KEY_TTL_MS]],
  ['HGET', ({ otherKey }) => [otherKey(), 'e']],
  ['HMGET', ({ otherKey }) => [otherKey(), 'e', 'r']],
  ['HDEL', ({ key }) => [key, 'e', 'r']],
  ['PUBLISH', ({ channel }) => [channel, '']]
]

/** In a cluster, ioredis needs these commands to find the nodes. */
export const clusterCommands: readonly Command[] = [
  ['CLUSTER|SLOTS', () => []],
  ['CLUSTER|INFO', () => []]
]

/** The server works without these commands. */
export const optionalCommands: readonly Command[] = [['CLIENT|SETNAME', () => ['platform-auth-server']]]

/** What Redis refuses to the user of `redisUrl`, as rights of an ACL, such as `+hset`, `~platform-auth:*` and `&platform-auth:*`. */
interface RefusedRights {
  readonly needed: readonly string[]
  readonly optional: readonly string[]
}

export interface RedisProblem {
  /** `timeout`, a Node error code, or the code of a Redis error reply. */
  readonly reason: string
  /** True if Redis refuses the database of `redisUrl`. */
  readonly isAboutDatabase?: boolean
}

/**
 * Runs the commands in the Redis at `address`.
 * @param timeoutMs the time limit of the whole call
 */
export async function testRights(
  address: RedisUrl,
  config: Config,
  timeoutMs: number
): Promise<RefusedRights | RedisProblem> {
  try {
    return await withRedis(address, config, timeoutMs, async redis => {
      const commands = address.kind === 'cluster' ? [...serverCommands, ...clusterCommands] : serverCommands
      const needed = await refusedOf(redis, commands)
      const subscription = await redis.subscribed.then(() => undefined, missingRights('SUBSCRIBE', redis))
      return {
        needed: [...new Set([...needed, ...(subscription ?? [])])],
        optional: await refusedOf(redis, optionalCommands)
      }
    })
  } catch (error) {
    const command = commandOf(error)
    if (command !== undefined && !isRefusedDatabase(error)) return { needed: [rightOf(command)], optional: [] }
    return { reason: reasonOf(error), isAboutDatabase: isRefusedDatabase(error) }
  }
}

async function refusedOf(redis: CheckedRedis, commands: readonly Command[]): Promise<string[]> {
  const otherKey = () => `${redis.prefix}check-${randomBytes(9).toString('base64url')}`
  const names = { key: otherKey(), channel: redis.channel, otherKey }
  const refused: string[] = []
  for (const [name, args] of commands) {
    const [command = '', ...subcommand] = name.split('|')
    const rights = await redis.commands
      .call(command, ...subcommand, ...args(names))
      .then(() => [], missingRights(name, redis))
    refused.push(...rights)
  }
  return refused
}

/** Returns a function that turns a NOPERM reply into the missing right. It throws every other error. */
function missingRights(name: string, { prefix }: CheckedRedis): (error: unknown) => string[] {
  return function rightsOf(error) {
    if (reasonOf(error) === 'NOSCRIPT') return []
    if (reasonOf(error) !== 'NOPERM') throw error
    const { message } = error as Error
    if (commandOf(error) !== undefined) return [rightOf(name)]
    if (/\bkeys?\b/.test(message)) return [`~${prefix}*`]
    if (/\bchannels?\b/.test(message)) return [`&${prefix}*`]
    return [rightOf(name)]
  }
}

function rightOf(command: string): string {
  return `+${command.toLowerCase()}`
}

/** Returns the command that a NOPERM reply names. In a cluster, the connection itself needs commands. */
function commandOf(error: unknown): string | undefined {
  const { message = '', lastNodeError } = error as Partial<Error> & { readonly lastNodeError?: unknown }
  if (lastNodeError instanceof Error) return commandOf(lastNodeError)
  return reasonOf(error) === 'NOPERM' ? /run the '([\w|-]+)' command/.exec(message)?.[1] : undefined
}
