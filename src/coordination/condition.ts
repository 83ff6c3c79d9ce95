/** What a Redis says about its memory and its persistence. Only the `check` command asks; the server never does. */
import type { Cluster, Redis } from 'ioredis'
import { parseRedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import { within } from '../support/within.js'
import { prefixOf } from './index.js'
import { openRedisClient, type RedisClient } from './redis-client.js'

/** One Redis server. A member is undefined when this user may use neither INFO nor CONFIG GET to read it. */
export interface RedisCondition {
  /** `maxmemory-policy`, such as `noeviction`. */
  readonly evictionPolicy: string | undefined
  readonly usedBytes: number | undefined
  /** 0 means without a limit. */
  readonly maxBytes: number | undefined
  readonly persistence: 'append-only file' | 'snapshots' | 'none' | undefined
  /** Whether the last write to disk failed. */
  readonly hasFailedToSave: boolean
  /** Whether replicas follow this server, so that one of them can take over with its data. */
  readonly hasReplicas: boolean
}

/**
 * The condition of the Redis of `config`; in a cluster, of every master.
 * @param timeoutMs for everything together; rejects with TimeLimitError after it, or with what the connection ran into
 */
export async function redisConditions(config: Config, timeoutMs: number): Promise<readonly RedisCondition[]> {
  const address = parseRedisAddress(config.redisUrl ?? '')
  if (!address) throw new TypeError('redisUrl is not the address of a Redis')
  const channels = [`${prefixOf(config)}wake:check`]
  let opening: Promise<RedisClient> | undefined
  const ready = new Promise<void>((onReady, onTrouble) => {
    opening = openRedisClient(address, { channels, onReady, onTrouble, onLost() {}, onMessage() {} })
    opening.catch(onTrouble)
  })
  async function read() {
    await ready
    const client = (await opening) as RedisClient
    // The client of a single server or of a cluster. Its type shows only the commands that the server itself needs.
    const commands = client.commands as Redis | Cluster
    const servers = commands.isCluster ? (commands as Cluster).nodes('master') : [commands as Redis]
    return Promise.all(servers.map(conditionOf))
  }
  try {
    return await within(timeoutMs, read())
  } finally {
    await opening?.then(client => client.close())
  }
}

async function conditionOf(server: Redis): Promise<RedisCondition> {
  const [info, config] = await Promise.all([
    server.info().then(parseInfo, nothing),
    server.config('GET', 'maxmemory', 'maxmemory-policy', 'appendonly', 'save').then(parsePairs, nothing)
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

// A managed Redis often forbids these commands (NOPERM), or does not know them (ERR).
function nothing(): ReadonlyMap<string, string> {
  return new Map()
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const lines = text.split('\r\n').filter(line => line.includes(':') && !line.startsWith('#'))
  return new Map(lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** The answer of CONFIG GET: names and values in turn. */
function parsePairs(answer: unknown): ReadonlyMap<string, string> {
  const words = Array.isArray(answer) ? answer.map(String) : []
  return new Map(words.flatMap((name, index) => (index % 2 === 0 ? [[name, words[index + 1] ?? '']] : [])))
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/**
 * @param appendOnly `1` or `yes` when an append-only file is written
 * @param save when snapshots are made; empty for never
 */
function persistenceOf(appendOnly: string | undefined, save: string | undefined): RedisCondition['persistence'] {
  if (appendOnly === '1' || appendOnly === 'yes') return 'append-only file'
  if (appendOnly === undefined || save === undefined) return undefined
  return save === '' ? 'none' : 'snapshots'
}
