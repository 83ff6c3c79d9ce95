/** Connects to Redis, and reads its memory and persistence settings. */
import type { RedisUrl } from '../../config/redis-url.js'
import type { Config } from '../../config/settings.js'
import { channelOf, prefixOf } from '../../store/index.js'
import { type Cluster, openRedisClient, type Redis, type RedisClient } from '../../store/redis-client.js'
import { within } from '../../support/clock.js'

/**
 * The state of one Redis server. A member is undefined if Redis did not report its value, for example for lack of
 * permission.
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

/**
 * Connects to the Redis at `address` and reads its state. For a cluster, the list has one entry for each master.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection
 */
export function redisConditions(
  address: RedisUrl,
  config: Config,
  timeoutMs: number
): Promise<readonly RedisCondition[]> {
  return withRedis(address, config, timeoutMs, async ({ commands }) => {
    const servers = commands.isCluster ? (commands as Cluster).nodes('master') : [commands as Redis]
    return Promise.all(servers.map(server => conditionOf(server, address.kind)))
  })
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
function parsePairs(answer: unknown): ReadonlyMap<string, string> {
  const words = Array.isArray(answer) ? answer.map(String) : []
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
export interface CheckedRedis {
  /** The ioredis client, because `check` also uses commands that the server does not use. */
  readonly commands: Redis | Cluster
  /** The beginning of the keys of this deployment. */
  readonly prefix: string
  readonly channel: string
  /** Rejects if Redis does not accept the channel. */
  readonly subscribed: Promise<void>
}

/**
 * Connects to the Redis at `address`, calls `use`, and closes the connection.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection and of `use`
 */
export async function withRedis<T>(
  address: RedisUrl,
  config: Config,
  timeoutMs: number,
  use: (redis: CheckedRedis) => Promise<T>
): Promise<T> {
  const prefix = prefixOf(config)
  const channel = channelOf(prefix)
  let opening: Promise<RedisClient> | undefined
  let subscribed: Promise<void> | undefined
  const ready = new Promise<void>((onReady, onError) => {
    subscribed = new Promise((onSubscribed, onSubscribeFailed) => {
      const events = {
        channels: [channel],
        onReady,
        onError,
        onSubscribed,
        onSubscribeFailed,
        onLost() {},
        onMessage() {}
      }
      opening = openRedisClient(address, events, config.redisTls)
      opening.catch(onError)
    })
  })
  // If the commands fail first, nothing waits for the subscription.
  subscribed?.catch(() => {})
  async function connectAndUse() {
    await ready
    const { commands } = (await opening) as RedisClient
    return use({ commands: commands as Redis | Cluster, prefix, channel, subscribed: subscribed as Promise<void> })
  }
  try {
    return await within(timeoutMs, connectAndUse())
  } finally {
    await opening?.then(
      client => client.close(),
      () => {}
    )
  }
}
