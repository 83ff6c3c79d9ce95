/** Reads the memory and persistence settings of Redis. Only the `check` command uses this file. */
import type { Cluster, Redis } from 'ioredis'
import type { Config } from '../config/settings.js'
import { withRedis } from './with-redis.js'

/**
 * The state of one Redis server. A member is undefined if Redis did not report its value, for example for lack of
 * permission.
 */
export interface RedisCondition {
  /** `maxmemory-policy`, such as `noeviction`. */
  readonly evictionPolicy: string | undefined
  readonly usedBytes: number | undefined
  /** `maxmemory`. 0 means that there is no limit. */
  readonly maxBytes: number | undefined
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | undefined
  /** True if the last write to disk failed. */
  readonly hasFailedToSave: boolean
  /** True if this Redis server has replicas. A replica has a copy of the data and can take over. */
  readonly hasReplicas: boolean
}

/**
 * Connects to the Redis of `config` and reads its state. For a cluster, the list has one entry for each master.
 * @param timeoutMs the time limit of the whole call
 * @throws TimeLimitError if the time limit is exceeded; also the errors of the connection
 */
export function redisConditions(config: Config, timeoutMs: number): Promise<readonly RedisCondition[]> {
  return withRedis(config, timeoutMs, async client => {
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
