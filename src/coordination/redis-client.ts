/**
 * Connections to Redis: one that commands share, one that hears messages. The only file that knows ioredis, which is
 * loaded when the first is opened. Every fault is the link's to judge, so that nothing here queues, repeats or logs.
 */
import type { Cluster, ClusterOptions, Redis, RedisCommander, RedisOptions } from 'ioredis'
import type { RedisAddress } from '../config/redis-address.js'

export type RedisCommands = Pick<RedisCommander, 'eval' | 'pttl' | 'set'>

export interface RedisClient {
  readonly commands: RedisCommands
  close(): Promise<void>
}

export interface RedisEvents {
  readonly channel: string
  readonly onReady: () => void
  readonly onLost: () => void
  /** What a connection ran into; the command that fails over it says so too, if there is one. */
  readonly onTrouble: (error: Error) => void
  readonly onMessage: (message: string) => void
}

const CONNECT_MS = 2000
// A connection on which nothing comes back is dropped, since a firewall, or a failover, may have forgotten it.
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
  const stopHearing = isCluster(commands) ? hearCluster(commands, events) : hear(commands, events)
  return {
    commands,
    async close() {
      stopHearing()
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
    // A certificate is made out to a name, not to the number that it resolves to.
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
    // Asked for on every request, many marks travel as one write.
    enableAutoPipelining: true,
    // A lost connection fails its commands at once; which of them may be sent again is not for the client to know.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // Readiness is seen by doing what will be done; INFO is often forbidden.
    enableReadyCheck: false,
    // After a failover the old master only reads: its sentinels, or its name, lead to the new one.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY')
  } satisfies RedisOptions
}

function retryStrategy(times: number): number {
  return Math.min(50 * times, LONGEST_RETRY_MS) + Math.random() * 50
}

/** A connection that subscribes can do nothing else in the older protocol, so it is one of its own. */
function hear(commands: Redis, { channel, onMessage }: RedisEvents): () => void {
  const subscriber = commands.duplicate({ enableAutoPipelining: false })
  subscriber.on('error', () => {})
  subscriber.on('message', (_channel, message) => onMessage(message))
  subscriber.on('ready', () => subscriber.subscribe(channel).catch(() => {}))
  const heartbeat = setInterval(() => subscriber.ping().catch(() => {}), HEARTBEAT_MS)
  heartbeat.unref()
  return () => {
    clearInterval(heartbeat)
    subscriber.disconnect()
  }
}

function hearCluster(cluster: Cluster, { channel, onMessage }: RedisEvents): () => void {
  cluster.on('message', (_channel, message) => onMessage(message))
  cluster.on('ready', () => cluster.subscribe(channel).catch(() => {}))
  return () => {}
}
