/**
 * Connections to Redis: one for commands and one for messages. This is the only file that knows ioredis, which is loaded
 * when the first connection is opened. The link decides what a fault means, so nothing here queues, repeats or logs.
 */
import type { Cluster, ClusterOptions, Redis, RedisCommander, RedisOptions } from 'ioredis'
import type { RedisAddress } from '../config/redis-address.js'

export type RedisCommands = Pick<RedisCommander, 'eval' | 'evalsha' | 'get' | 'pexpire' | 'pttl' | 'publish' | 'set'>

export interface RedisClient {
  readonly commands: RedisCommands
  /** The sections `memory` and `stats` of INFO, of each master of a cluster. */
  info(): Promise<string[]>
  close(): Promise<void>
}

export interface RedisEvents {
  readonly channels: readonly string[]
  readonly onReady: () => void
  readonly onLost: () => void
  /** The error of a connection. A command that fails because of it rejects with an error of its own. */
  readonly onTrouble: (error: Error) => void
  readonly onMessage: (channel: string, message: string) => void
}

const CONNECT_MS = 2000
// A connection that brings no answer is dropped, because a firewall or a failover may have forgotten it.
const SILENT_MS = 3000
const LONGEST_RETRY_MS = 500
const HEARTBEAT_MS = 10_000
const QUIT_MS = 500

export async function openRedisClient(address: RedisAddress, events: RedisEvents): Promise<RedisClient> {
  const ioredis = await import('ioredis')
  const commands = address.kind === 'cluster' ? openCluster(ioredis, address) : openSingle(ioredis, address)
  commands.on('error', events.onTrouble)
  commands.on('ready', events.onReady)
  commands.on('close', events.onLost)
  const stopListening = isCluster(commands) ? listenToCluster(commands, events) : listenTo(commands, events)
  return {
    commands,
    info: () => Promise.all(mastersOf(commands).map(infoOf)),
    async close() {
      stopListening()
      const timer = setTimeout(() => commands.disconnect(), QUIT_MS)
      await commands.quit().catch(() => commands.disconnect())
      clearTimeout(timer)
    }
  }
}

type IoRedis = Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster
}

function mastersOf(client: Redis | Cluster): readonly Redis[] {
  return isCluster(client) ? client.nodes('master') : [client]
}

async function infoOf(node: Redis): Promise<string> {
  const sections = await Promise.all([node.info('memory'), node.info('stats')])
  return sections.join('\n')
}

function openSingle({ Redis }: IoRedis, address: RedisAddress): Redis {
  const { kind, hosts, masterName, sentinelUsername, sentinelPassword, tls } = address
  const where: RedisOptions =
    kind === 'sentinel'
      ? {
          sentinels: [...hosts],
          name: masterName as string,
          ...(sentinelUsername !== undefined && { sentinelUsername }),
          ...(sentinelPassword !== undefined && { sentinelPassword }),
          ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} })
        }
      : { ...hosts[0] }
  return new Redis({ ...commonOptions(address), ...where, enableOfflineQueue: false, retryStrategy })
}

function openCluster({ Cluster }: IoRedis, address: RedisAddress): Cluster {
  const options: ClusterOptions = {
    redisOptions: commonOptions(address),
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: CONNECT_MS,
    // A certificate is issued for a host name, so the address must not be resolved before TLS sees it.
    ...(address.tls && { dnsLookup: (host, callback) => callback(null, host) })
  }
  return new Cluster([...address.hosts], options)
}

function commonOptions({ username, password, database, tls }: RedisAddress) {
  return {
    db: database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
    connectionName: 'platform-auth-server',
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENT_MS,
    // Every request looks up a logout mark. Those of concurrent requests are sent in one write.
    enableAutoPipelining: true,
    // Commands of a lost connection fail at once. The client cannot know which of them may be sent again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // The link probes with real commands instead. The check would need INFO, which is often forbidden.
    enableReadyCheck: false,
    // After a failover the old master is read-only. A new connection, by sentinel or host name, leads to the new master.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY')
  } satisfies RedisOptions
}

function retryStrategy(times: number): number {
  return Math.min(50 * times, LONGEST_RETRY_MS) + Math.random() * 50
}

/** Subscribing needs a connection of its own, because the older protocol allows no other commands on it. */
function listenTo(commands: Redis, { channels, onMessage }: RedisEvents): () => void {
  const subscriber = commands.duplicate({ enableAutoPipelining: false })
  subscriber.on('error', () => {})
  subscriber.on('message', onMessage)
  subscriber.on('ready', () => subscriber.subscribe(...channels).catch(() => {}))
  const heartbeat = setInterval(() => subscriber.ping().catch(() => {}), HEARTBEAT_MS)
  heartbeat.unref()
  return () => {
    clearInterval(heartbeat)
    subscriber.disconnect()
  }
}

function listenToCluster(cluster: Cluster, { channels, onMessage }: RedisEvents): () => void {
  cluster.on('message', onMessage)
  cluster.on('ready', () => cluster.subscribe(...channels).catch(() => {}))
  return () => {}
}
