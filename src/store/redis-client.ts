/**
 * Opens the connections to Redis, for commands and for messages. The package ioredis is imported only when a connection
 * opens. This file reconnects, but it does not queue, repeat or log commands. `redis-link.ts` handles the errors.
 */
import type { Cluster, ClusterOptions, Redis, RedisCommander, RedisOptions } from 'ioredis'
import type { RedisAddress } from '../config/redis-address.js'
import type { Config } from '../config/settings.js'
import { isRefusedDatabase } from './redis-errors.js'
import { type RedisTls, tlsOptions } from './redis-tls.js'

export type { Cluster, Redis } from 'ioredis'

export type RedisCommands = Pick<RedisCommander, 'eval' | 'evalsha' | 'publish' | 'set'>

export interface RedisClient {
  readonly commands: RedisCommands
  close(): Promise<void>
}

export interface RedisEvents {
  readonly channels: readonly string[]
  readonly onReady: () => void
  readonly onLost: () => void
  /** Called for each error of the connection. A command that fails for this reason also rejects. */
  readonly onError: (error: Error) => void
  /** Called when messages arrive again after the connection for messages was lost. */
  readonly onSubscribed?: () => void
  /** Called when Redis does not accept the channels. */
  readonly onSubscribeFailed?: (error: Error) => void
  /** Called when a node of a cluster has joined or left. */
  readonly onNodeChange?: () => void
  readonly onMessage: (channel: string, message: string) => void
}

const CONNECT_MS = 2000
// If a connection gets no reply for this long, the client closes it, because a firewall or a failover can break a
// connection without notice.
const SOCKET_TIMEOUT_MS = 3000
const MAX_RETRY_DELAY_MS = 500
const PING_INTERVAL_MS = 10_000
const QUIT_MS = 500

/** @param tlsFiles the setting `redisTls` */
export async function openRedisClient(
  address: RedisAddress,
  events: RedisEvents,
  tlsFiles: Partial<Config['redisTls']> = {}
): Promise<RedisClient> {
  const ioredis = await import('ioredis')
  const target = { ...address, tls: address.tls ? tlsOptions(tlsFiles) : undefined }
  const commands = target.kind === 'cluster' ? openCluster(ioredis, target) : openSingle(ioredis, target)
  commands.on('error', (error: Error) => {
    // If Redis refuses the database, ioredis would go on in database 0. After this call it sends no command, and connects again.
    if (isRefusedDatabase(error)) (commands as Redis).disconnect(true)
    events.onError(error)
  })
  commands.on('ready', events.onReady)
  commands.on('close', events.onLost)
  for (const event of ['+node', '-node']) commands.on(event, () => events.onNodeChange?.())
  const unsubscribe = isCluster(commands) ? subscribeInCluster(commands, events) : subscribe(commands, events)
  return {
    commands,
    async close() {
      unsubscribe()
      const timer = setTimeout(() => commands.disconnect(), QUIT_MS)
      await commands.quit().catch(() => commands.disconnect())
      clearTimeout(timer)
    }
  }
}

/** The address, with the options of TLS instead of a boolean. */
type Target = Omit<RedisAddress, 'tls'> & { readonly tls: RedisTls | undefined }

type IoRedis = Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster
}

function openSingle({ Redis }: IoRedis, address: Target): Redis {
  const { kind, hosts, masterName, sentinelUsername, sentinelPassword, tls } = address
  const target: RedisOptions =
    kind === 'sentinel'
      ? {
          sentinels: [...hosts],
          name: masterName as string,
          ...(sentinelUsername !== undefined && { sentinelUsername }),
          ...(sentinelPassword !== undefined && { sentinelPassword }),
          ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls })
        }
      : { ...hosts[0] }
  return new Redis({ ...commonOptions(address), ...target, enableOfflineQueue: false, retryStrategy })
}

function openCluster({ Cluster }: IoRedis, address: Target): Cluster {
  const options: ClusterOptions = {
    redisOptions: commonOptions(address),
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: CONNECT_MS,
    // A certificate is issued for a host name. This function keeps ioredis from replacing the name by an IP address
    // before TLS checks the certificate.
    ...(address.tls && { dnsLookup: (host, callback) => callback(null, host) })
  }
  return new Cluster([...address.hosts], options)
}

function commonOptions({ username, password, database, tls }: Target) {
  return {
    db: database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
    connectionName: 'platform-auth-server',
    connectTimeout: CONNECT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    // Every request runs a script. Pipelining sends the scripts of concurrent requests together.
    enableAutoPipelining: true,
    // When a connection is lost, its commands fail at once. The client does not know which commands can be repeated
    // safely.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // The ready check needs INFO, which is often forbidden. `redis-link.ts` probes with its own commands instead.
    enableReadyCheck: false,
    // After a failover the old master is read-only. Reconnecting through the sentinel or the host name finds the new
    // master.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY')
  } satisfies RedisOptions
}

function retryStrategy(times: number): number {
  return Math.min(50 * times, MAX_RETRY_DELAY_MS) + Math.random() * 50
}

/**
 * Opens a second connection for messages, because a connection in RESP2 cannot send other commands while it is
 * subscribed. Returns a function that closes the second connection.
 */
function subscribe(commands: Redis, events: RedisEvents): () => void {
  const { channels, onMessage, onSubscribed, onSubscribeFailed } = events
  // Messages belong to no database.
  const subscriber = commands.duplicate({ enableAutoPipelining: false, db: 0 })
  subscriber.on('error', () => {})
  subscriber.on('message', onMessage)
  subscriber.on('ready', () => subscriber.subscribe(...channels).then(onSubscribed, onSubscribeFailed ?? ignore))
  const heartbeat = setInterval(() => subscriber.ping().catch(() => {}), PING_INTERVAL_MS)
  heartbeat.unref()
  return () => {
    clearInterval(heartbeat)
    subscriber.disconnect()
  }
}

function subscribeInCluster(cluster: Cluster, events: RedisEvents): () => void {
  const { channels, onMessage, onSubscribed, onSubscribeFailed } = events
  cluster.on('message', onMessage)
  cluster.on('ready', () => cluster.subscribe(...channels).then(onSubscribed, onSubscribeFailed ?? ignore))
  return () => {}
}

function ignore(): void {}
