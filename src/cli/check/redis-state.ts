/** Connects to Redis, runs the commands of the server, and reads the memory and persistence settings of Redis. */
import { randomBytes } from 'node:crypto'
import type { RedisAddress } from '../../config/redis-address.js'
import type { Config } from '../../config/settings.js'
import { createKeyring } from '../../session/keyring.js'
import { channelOf, prefixOf } from '../../store/index.js'
import type { IndexTimes } from '../../store/index-scripts.js'
import {
  type Cluster,
  openRedisClient,
  type Redis,
  type RedisClient,
  type RedisCommands
} from '../../store/redis-client.js'
import { reasonOf } from '../../store/redis-errors.js'
import { createRedisScripts } from '../../store/redis-scripts.js'
import { within } from '../../support/within.js'

const KEY_TTL_MS = 1000

/**
 * Runs the Redis commands of a login, a refresh and a logout once, in the Redis at `address`. Returns undefined if all
 * commands succeed. Otherwise returns the reason, such as `timeout`, a Node error code, or the code of a Redis error reply.
 * @param timeoutMs the time limit of the whole call
 */
export async function redisProblem(
  address: RedisAddress,
  config: Config,
  timeoutMs: number
): Promise<string | undefined> {
  try {
    await withRedis(address, config, timeoutMs, async ({ commands }, { prefix, channel }) => {
      const times = { entryMs: KEY_TTL_MS, loginMs: KEY_TTL_MS, keepMs: KEY_TTL_MS, lockMs: KEY_TTL_MS, settleMs: 0 }
      const sealer = createKeyring([randomBytes(32).toString('base64url')]).sealer('check')
      const scripts = createRedisScripts(command => command(commands), prefix, sealer, times)
      const id = `check-${randomBytes(9).toString('base64url')}`
      const owner = 'check'
      const newLoss = 'check'
      const record = { id, rev: 1, loggedInAt: 0, issuedAt: 0, fields: { refresh_token: '', expires_at: 0 } }
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      await scripts.look(id, 0)
      await scripts.take(id, { rev: 0, owner, reported: undefined, newLoss })
      await scripts.hold(id, 0, owner, KEY_TTL_MS, newLoss)
      await scripts.save(id, { rev: 1, owner, outcome, newLoss })
      await scripts.seen(id, 1, newLoss)
      await scripts.unseen(id)
      await scripts.out(id)
      if (config.platform.backChannelLogout) await useIndex(commands, prefix, id, times)
      await commands.set(`${prefix}probe`, '1', 'PX', KEY_TTL_MS)
      await commands.publish(channel, '')
    })
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

/** Runs the commands of the index of sessions. Only servers with back-channel logout need these rights. */
async function useIndex(commands: RedisCommands, prefix: string, id: string, times: IndexTimes): Promise<void> {
  const { createRedisIndexScripts } = await import('../../store/index-scripts.js')
  const scripts = createRedisIndexScripts(command => command(commands), prefix, times)
  await scripts.join(id, id, undefined)
  await scripts.find(id, 0)
  await scripts.leave(id, [id])
  await scripts.claim(id, KEY_TTL_MS)
  await scripts.keepClaim(id, KEY_TTL_MS)
  await scripts.release(id)
}

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
}

/**
 * Connects to the Redis at `address` and reads its state. For a cluster, the list has one entry for each master.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection
 */
export function redisConditions(
  address: RedisAddress,
  config: Config,
  timeoutMs: number
): Promise<readonly RedisCondition[]> {
  return withRedis(address, config, timeoutMs, async client => {
    // The object is an ioredis client. Its declared type lacks INFO and CONFIG, because the server does not use them.
    const commands = client.commands as Redis | Cluster
    const servers = commands.isCluster ? (commands as Cluster).nodes('master') : [commands as Redis]
    return Promise.all(servers.map(conditionOf))
  })
}

async function conditionOf(server: Redis): Promise<RedisCondition> {
  const [info, config] = await Promise.all([
    server.info().then(parseInfo, emptyReply),
    server.config('GET', 'maxmemory', 'maxmemory-policy', 'appendonly', 'save').then(parsePairs, emptyReply)
  ])
  return {
    evictionPolicy: info.get('maxmemory_policy') ?? config.get('maxmemory-policy'),
    usedBytes: numberOf(info.get('used_memory')),
    maxBytes: numberOf(info.get('maxmemory') ?? config.get('maxmemory')),
    persistence: persistenceOf(info.get('aof_enabled') ?? config.get('appendonly'), config.get('save')),
    hasFailedToSave: ['rdb_last_bgsave_status', 'aof_last_write_status'].some(name => info.get(name) === 'err'),
    hasReplicas: (numberOf(info.get('connected_slaves')) ?? 0) > 0
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

/** The prefix of our keys, and the channel to which the client subscribes. */
interface RedisNames {
  readonly prefix: string
  readonly channel: string
}

/**
 * Connects to the Redis at `address`, calls `use`, and closes the connection.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection and of `use`
 */
async function withRedis<T>(
  address: RedisAddress,
  config: Config,
  timeoutMs: number,
  use: (client: RedisClient, names: RedisNames) => Promise<T>
): Promise<T> {
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
