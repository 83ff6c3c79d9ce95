/** Runs the Redis commands of the server one by one, and reads the memory and persistence settings of Redis. */

import { randomBytes } from 'node:crypto'
import { within } from '../../base/clock.js'
import { isError } from '../../base/error-code.js'
import type { Config } from '../../config/settings.js'
import type { RedisUrl } from '../../config/types/redis-url.js'
import { channelOf, prefixOf } from '../../sessions/index.js'
import {
  type Cluster,
  isRefusedDatabase,
  isReply,
  openRedisClient,
  type Redis,
  reasonOf
} from '../../sessions/redis/redis-client.js'

/** The names in the arguments of the commands below. */
interface Names {
  /** The key to which the commands below write. */
  readonly key: string
  readonly channel: string
  /**
   * Returns a key that Redis does not have. Different keys belong to different hash slots. So if `redis.url` names a single node
   * of a cluster, that node replies MOVED to some of the commands, and the check reports that Redis is a cluster.
   */
  readonly otherKey: () => string
}

const SCRIPT = 'return 1'
// No script has this hash, so Redis replies NOSCRIPT to a user who may use EVALSHA.
const UNKNOWN_SCRIPT = '0'.repeat(40)
const KEY_TTL_MS = 1000

type RedisCommand = readonly [name: string, args: (names: Names) => readonly (string | number)[]]

/**
 * The commands of the server (src/sessions) and of its scripts, in an order that leaves no key behind. SUBSCRIBE is not in
 * the list, because it needs a separate connection for messages.
 */
export const serverCommands: readonly RedisCommand[] = [
  ['PING', () => []],
  ['EVAL', ({ otherKey }) => [SCRIPT, 1, otherKey()]],
  ['EVALSHA', ({ otherKey }) => [UNKNOWN_SCRIPT, 1, otherKey()]],
  ['TIME', () => []],
  ['HSET', ({ key }) => [key, 'e', '1', 'r', '1']],
  ['PEXPIRE', ({ key }) => [key, KEY_TTL_MS]],
  ['HGET', ({ otherKey }) => [otherKey(), 'e']],
  ['HMGET', ({ otherKey }) => [otherKey(), 'e', 'r']],
  ['HSTRLEN', ({ otherKey }) => [otherKey(), 'e']],
  ['HDEL', ({ key }) => [key, 'e', 'r']],
  ['PUBLISH', ({ channel }) => [channel, '']]
]

/** In a cluster, ioredis needs these commands to find the nodes. */
export const clusterCommands: readonly RedisCommand[] = [
  ['CLUSTER|SLOTS', () => []],
  ['CLUSTER|INFO', () => []]
]

/** The state of a Redis that can be reached. */
interface RedisState {
  /**
   * The rights that the user of `redis.url` lacks, written as in an ACL, such as `+hset`, `~platform-auth:*` and
   * `&platform-auth:*`.
   */
  readonly refused: readonly string[]
  /** True if `redis.url` has a password, but Redis also accepts connections without one. */
  readonly isOpen: boolean
  /** One entry for each master. */
  readonly conditions: readonly RedisCondition[]
}

export interface RedisProblem {
  /** `timeout`, a Node error code, or the code of a Redis error reply. */
  readonly reason: string
  /** True if Redis refuses the database of `redis.url`. */
  readonly isAboutDatabase?: boolean
  /** The command to which Redis replied with the error, in upper case. */
  readonly command?: string | undefined
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
  try {
    return await withRedis(redisUrl, config, timeoutMs, async redis => {
      const ofCluster = redisUrl.kind === 'cluster' ? clusterCommands : []
      const refused = await refusedOf(redis, [...serverCommands, ...ofCluster])
      const subscription = await redis.subscribed.then(
        () => [],
        (error: unknown) => (isReply(error) ? missingRights('SUBSCRIBE', redis)(error) : undefined)
      )
      // The first connection works, but Redis closes the second one, which is for messages.
      if (subscription === undefined) return { reason: 'MAXCLIENTS' }
      return {
        refused: [...new Set([...refused, ...subscription])],
        isOpen: redisUrl.password !== undefined && (await needsNoPassword(redis, redisUrl.password)),
        conditions: await conditionsOf(redis, redisUrl)
      }
    })
  } catch (error) {
    const command = commandOf(error)
    if (command !== undefined && !isRefusedDatabase(error))
      return { refused: [rightOf(command)], isOpen: false, conditions: [] }
    const { command: sent } = error as { readonly command?: { readonly name?: string } }
    return { reason: reasonOf(error), isAboutDatabase: isRefusedDatabase(error), command: sent?.name?.toUpperCase() }
  }
}

async function refusedOf(redis: CheckedRedis, commands: readonly RedisCommand[]): Promise<string[]> {
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

/** ioredis ignores that Redis has no password, so the password is sent again. */
async function needsNoPassword({ commands }: CheckedRedis, password: string): Promise<boolean> {
  const reply = await commands.call('AUTH', password).then(
    () => '',
    (error: Error) => error.message
  )
  return reply.includes('without any password configured') || reply.includes('no password is set')
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

/**
 * Returns the command that a NOPERM reply names. In a cluster, such a reply can also be the reason why ioredis could
 * not connect, because ioredis needs commands to find the nodes.
 */
function commandOf(error: unknown): string | undefined {
  const { message = '', lastNodeError } = error as Partial<Error> & { readonly lastNodeError?: unknown }
  if (isError(lastNodeError)) return commandOf(lastNodeError)
  return reasonOf(error) === 'NOPERM' ? /run the '([\w|-]+)' command/.exec(message)?.[1] : undefined
}

/**
 * The state of one Redis server. A member is undefined if Redis did not report its value, for example because the user
 * of `redis.url` lacks the permission.
 */
export interface RedisCondition {
  /** `maxmemory-policy`, such as `noeviction`. */
  readonly evictionPolicy?: string | undefined
  readonly usedBytes?: number | undefined
  /** `maxmemory`. 0 means that there is no limit. */
  readonly maxBytes?: number | undefined
  readonly persistence?: 'append-only file' | 'snapshots' | 'none' | undefined
  /** True if the last write to disk failed. */
  readonly hasFailedToSave?: boolean
  /** True if this Redis server has replicas. A replica has a copy of the data and can take over. */
  readonly hasReplicas?: boolean
  /** `min-replicas-to-write`, for a master that sentinels can replace. */
  readonly minReplicasToWrite?: number | undefined
}

function conditionsOf({ commands }: CheckedRedis, { kind }: RedisUrl): Promise<readonly RedisCondition[]> {
  const servers = commands.isCluster ? (commands as Cluster).nodes('master') : [commands as Redis]
  return Promise.all(servers.map(server => conditionOf(server, kind)))
}

const CONFIG_NAMES = ['maxmemory', 'maxmemory-policy', 'appendonly', 'save', 'min-replicas-to-write']

async function conditionOf(server: Redis, kind: RedisUrl['kind']): Promise<RedisCondition> {
  const [info, config] = await Promise.all([
    server.info().then(parseInfo, emptyReply),
    server.config('GET', ...CONFIG_NAMES).then(parsePairs, emptyReply)
  ])
  return {
    evictionPolicy: info.get('maxmemory_policy') ?? config.get('maxmemory-policy'),
    usedBytes: numberOf(info.get('used_memory')),
    maxBytes: numberOf(info.get('maxmemory') ?? config.get('maxmemory')),
    persistence: persistenceOf(info.get('aof_enabled') ?? config.get('appendonly'), config.get('save')),
    hasFailedToSave: ['rdb_last_bgsave_status', 'aof_last_write_status'].some(name => info.get(name) === 'err'),
    hasReplicas: (numberOf(info.get('connected_slaves')) ?? 0) > 0,
    ...(kind === 'sentinel' && { minReplicasToWrite: numberOf(config.get('min-replicas-to-write')) })
  }
}

// A hosted Redis service often forbids INFO and CONFIG (NOPERM) or does not support them (ERR).
function emptyReply(): ReadonlyMap<string, string> {
  return new Map()
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const lines = text.split('\r\n').filter(line => line.includes(':') && !line.startsWith('#'))
  return new Map(lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** Parses the reply to CONFIG GET, which lists names and values alternately. */
function parsePairs(reply: unknown): ReadonlyMap<string, string> {
  const words = Array.isArray(reply) ? reply.map(String) : []
  return new Map(words.flatMap((name, index) => (index % 2 === 0 ? [[name, words[index + 1] ?? '']] : [])))
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/**
 * @param appendOnly `1` or `yes` if Redis writes an append-only file
 * @param save the schedule of snapshots; empty if Redis makes none
 */
function persistenceOf(appendOnly: string | undefined, save: string | undefined): RedisCondition['persistence'] {
  if (appendOnly === '1' || appendOnly === 'yes') return 'append-only file'
  if (appendOnly === undefined || save === undefined) return undefined
  return save === '' ? 'none' : 'snapshots'
}

/** A connection with the rights of the server. */
interface CheckedRedis {
  /** The ioredis client, because `check` also uses commands that the server does not use. */
  readonly commands: Redis | Cluster
  /** The prefix of all Redis keys of this deployment. */
  readonly prefix: string
  readonly channel: string
  /** Resolves when Redis has accepted the subscription to the channel, and rejects if it refuses. */
  readonly subscribed: Promise<void>
}

/**
 * Connects to the Redis at `redis.url`, calls `use`, and closes the connection.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection and of `use`
 */
async function withRedis<T>(
  redisUrl: RedisUrl,
  config: Config,
  timeoutMs: number,
  use: (redis: CheckedRedis) => Promise<T>
): Promise<T> {
  const prefix = prefixOf(config)
  const channel = channelOf(prefix)
  const [ready, subscribed] = [deferred(), deferred()]
  const events = {
    channels: [channel],
    onReady: ready.resolve,
    onError: ready.reject,
    onSubscribed: subscribed.resolve,
    onSubscribeFailed: subscribed.reject,
    onLost() {},
    onMessage() {}
  }
  const opening = openRedisClient(redisUrl, events, config.redis)
  async function connectAndUse() {
    const [{ commands }] = await Promise.all([opening, ready.promise])
    return use({ commands: commands as Redis | Cluster, prefix, channel, subscribed: subscribed.promise })
  }
  try {
    return await within(timeoutMs, connectAndUse())
  } finally {
    await opening.then(
      client => client.close(),
      () => {}
    )
  }
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
