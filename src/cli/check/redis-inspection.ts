/** Runs the Redis commands of the server one by one, and reads the settings of Redis that decide if data can be lost. */

import { randomBytes } from 'node:crypto'
import { within } from '../../base/clock.js'
import { isError } from '../../base/error-code.js'
import type { Config } from '../../config/settings.js'
import type { RedisUrl } from '../../config/types/redis-url.js'
import { channelOf, prefixOf } from '../../sessions/index.js'
import { type Cluster, openRedisClient, type Redis } from '../../sessions/redis/redis-client.js'
import { isRefusedDatabase, isReply, reasonOf } from '../../sessions/redis/redis-errors.js'

// No script has this hash, so Redis replies NOSCRIPT to a user who may use EVALSHA.
const UNKNOWN_SCRIPT = '0'.repeat(40)
const KEY_TTL_MS = 1000

type RedisCommand = readonly [name: string, ...args: (string | number)[]]

/**
 * Returns the commands of the server (src/sessions) and of its scripts, in an order that leaves no key behind. SUBSCRIBE is missing,
 * because it needs a separate connection for messages. Most commands have different keys, which belong to different hash slots. So if
 * `redis.url` names a single node of a cluster, that node replies MOVED to some of them.
 */
export function serverCommands(prefix: string): readonly RedisCommand[] {
  const newKey = () => `${prefix}check-${randomBytes(9).toString('base64url')}`
  const key = newKey()
  return [
    ['PING'],
    ['EVAL', 'return 1', 1, newKey()],
    ['EVALSHA', UNKNOWN_SCRIPT, 1, newKey()],
    ['TIME'],
    ['HSET', key, 'e', '1', 'r', '1'],
    ['PEXPIRE', key, KEY_TTL_MS],
    ['HGET', newKey(), 'e'],
    ['HMGET', newKey(), 'e', 'r'],
    ['HSTRLEN', newKey(), 'e'],
    ['HDEL', key, 'e', 'r'],
    ['PUBLISH', channelOf(prefix), '']
  ]
}

/** In a cluster, ioredis needs these commands to find the nodes. */
export const clusterCommands: readonly RedisCommand[] = [
  ['CLUSTER', 'SLOTS'],
  ['CLUSTER', 'INFO']
]

/** The lines of INFO and the settings of one Redis server, by name. Those that the user of `redis.url` may not read are missing. */
export type RedisFacts = Readonly<Record<string, string>>

/** The state of a Redis that can be reached. */
interface RedisState {
  /** The rights that the user of `redis.url` lacks, written as in an ACL, such as `+hset`, `~platform-auth:*` and `&platform-auth:*`. */
  readonly refused: readonly string[]
  /** True if `redis.url` has a password, but Redis also accepts connections without one. */
  readonly isOpen: boolean
  /** One entry for each master. */
  readonly servers: readonly RedisFacts[]
}

export interface RedisProblem {
  /** `timeout`, a Node error code, or the code of a Redis error reply. */
  readonly reason: string
  /** The command to which Redis replied with the error, in upper case. */
  readonly command: string | undefined
}

/**
 * Runs the commands in the Redis at `redis.url`, and reads its state.
 * @param timeoutMs the time limit of the whole call
 */
export async function inspectRedis(
  redisUrl: RedisUrl,
  config: Config,
  timeoutMs: number
): Promise<RedisState | RedisProblem> {
  const prefix = prefixOf(config)
  const [ready, subscribed] = [deferred(), deferred()]
  const events = {
    channels: [channelOf(prefix)],
    onReady: ready.resolve,
    onError: ready.reject,
    onSubscribed: subscribed.resolve,
    onSubscribeFailed: subscribed.reject,
    onLost() {},
    onMessage() {}
  }
  const opening = openRedisClient(redisUrl, events, config.redis)

  async function inspect(): Promise<RedisState | RedisProblem> {
    const [client] = await Promise.all([opening, ready.promise])
    const redis = client.commands as Redis | Cluster
    const refused = new Set<string>()
    const note = (error: unknown) => void refused.add(rightIn(error, prefix))
    for (const [name, ...args] of [...serverCommands(prefix), ...(redis.isCluster ? clusterCommands : [])])
      await redis.call(name, ...args).catch(error => reasonOf(error) === 'NOSCRIPT' || note(error))
    const refusal = await subscribed.promise.then(
      () => undefined,
      (error: unknown) => error
    )
    // The first connection works, but Redis closes the second one, which is for messages.
    if (refusal !== undefined && !isReply(refusal)) return { reason: 'MAXCLIENTS', command: undefined }
    if (refusal !== undefined) note(refusal)
    if (refused.size > 0) return { refused: [...refused], isOpen: false, servers: [] }
    const masters = redis.isCluster ? (redis as Cluster).nodes('master') : [redis as Redis]
    const servers = await Promise.all(masters.map(server => factsOf(server, redisUrl)))
    return { refused: [], isOpen: await needsNoPassword(redis, redisUrl.password), servers }
  }

  try {
    return await within(timeoutMs, inspect())
  } catch (error) {
    // In a cluster, ioredis needs rights to connect.
    if (!isRefusedDatabase(error) && reasonOf(error) === 'NOPERM')
      return { refused: [rightIn(error, prefix)], isOpen: false, servers: [] }
    const { command } = error as { readonly command?: { readonly name?: string } }
    return { reason: reasonOf(error), command: isReply(error) ? command?.name?.toUpperCase() : undefined }
  } finally {
    await opening.then(
      client => client.close(),
      () => {}
    )
  }
}

/** Returns the right whose absence a NOPERM reply reports. Throws every other error. */
function rightIn(error: unknown, prefix: string): string {
  // ioredis could not connect to a cluster, because a node has sent this reply.
  const { lastNodeError } = error as { readonly lastNodeError?: unknown }
  if (isError(lastNodeError)) return rightIn(lastNodeError, prefix)
  if (reasonOf(error) !== 'NOPERM') throw error
  const { message } = error as Error
  const [, command] = /run the '([\w|-]+)' command/.exec(message) ?? []
  if (command !== undefined) return `+${command.toLowerCase()}`
  return `${/\bchannels?\b/.test(message) ? '&' : '~'}${prefix}*`
}

/** ioredis ignores that Redis has no password, so the password is sent again. */
async function needsNoPassword(redis: Redis | Cluster, password: string | undefined): Promise<boolean> {
  if (password === undefined) return false
  const reply: unknown = await redis.call('AUTH', password).catch((error: Error) => error.message)
  return /without any password configured|no password is set/.test(String(reply))
}

async function factsOf(server: Redis, { kind }: RedisUrl): Promise<RedisFacts> {
  // Only sentinels replace a master whose writes can then be lost.
  const ofMaster = kind === 'sentinel' ? ['min-replicas-to-write'] : []
  // A hosted Redis service often forbids INFO and CONFIG (NOPERM) or does not support them (ERR).
  const [info, settings] = await Promise.all([
    server.info().catch(() => ''),
    server.config('GET', 'maxmemory-policy', 'appendonly', 'save', ...ofMaster).catch(() => [])
  ])
  const facts: Record<string, string> = Object.fromEntries(
    [...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value])
  )
  // The reply to CONFIG GET lists names and values alternately.
  const words = (settings as readonly unknown[]).map(String)
  for (let index = 0; index < words.length; index += 2) facts[words[index] ?? ''] = words[index + 1] ?? ''
  return facts
}

/** Returns a promise with the functions that settle it. A rejection that no caller awaits is ignored. */
function deferred() {
  let settle: { resolve: () => void; reject: (error: unknown) => void } = { resolve() {}, reject() {} }
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  promise.catch(() => {})
  return { promise, ...settle }
}
