/**
 * Opens the connections to Redis. Messages have a separate connection. The package ioredis is imported only when a connection
 * opens. This file reconnects after a lost connection, but it does not queue, repeat or log commands. `connection.ts` handles the
 * errors.
 */

import type { Cluster, ClusterOptions, Redis, RedisCommander, RedisOptions } from 'ioredis'
import type { Config } from '../../config/settings.js'
import type { RedisUrl } from '../../config/types/redis-url.js'
import { isRefusedDatabase } from './redis-errors.js'
import { tlsOptions } from './redis-tls.js'
import { createReplyLimit } from './reply-limit.js'

export type { Cluster, Redis } from 'ioredis'

export type RedisCommands = Pick<RedisCommander, 'eval' | 'evalsha' | 'hget' | 'hmget' | 'hstrlen' | 'publish'>

export interface RedisClient {
  readonly commands: RedisCommands
  /** Closes the connection when all replies have arrived, and opens a new one. Never rejects. */
  reconnect(): Promise<void>
  close(): Promise<void>
}

export interface RedisEvents {
  readonly channels: readonly string[]
  readonly onReady: () => void
  readonly onLost: () => void
  /** Called when the connection is closed, because the reply to a command is too long. */
  readonly onReplyTooLong?: () => void
  /** Called for each error of the connection. A command that fails because of this error also rejects. */
  readonly onError: (error: Error) => void
  /**
   * Called each time a subscription to the channels begins: at the start, and again after the connection for messages was lost.
   */
  readonly onSubscribed?: () => void
  /** Called when Redis refuses the subscription to the channels. */
  readonly onSubscribeFailed?: (error: Error) => void
  /** Called when the masters of a cluster have changed. */
  readonly onNodeChange?: () => void
  readonly onMessage: (channel: string, message: string) => void
}

const CONNECT_MS = 2000
// If a command gets no reply within 3 seconds, the client closes the connection, because a firewall or a failover can break a
// connection without notice.
const SOCKET_TIMEOUT_MS = 3000
const MAX_RETRY_DELAY_MS = 500
// The connection for messages sends no commands, and the socket timeout applies only while a command waits for its reply. So this
// connection sends a ping every 10 seconds. A broken connection is then noticed after 13 seconds at most.
const PING_INTERVAL_MS = 10_000
const QUIT_MS = 500
const FAILED_SUBSCRIPTIONS = 3
// The slots of a cluster are read once a second, so a change of its masters is noticed within a second.
const NOTICE_MASTER_MS = 1000

/** @param tlsFiles the setting `redis` */
export async function openRedisClient(
  address: RedisUrl,
  events: RedisEvents,
  tlsFiles: Partial<Config['redis']> = {}
): Promise<RedisClient> {
  const ioredis = await import('ioredis')
  const target = { ...address, tls: address.tls ? tlsOptions(tlsFiles) : undefined }
  const sentinels = new Set<Redis>()
  const commands =
    target.kind === 'cluster' ? openCluster(ioredis, target, events) : openSingle(ioredis, target, events, sentinels)
  commands.on('error', (error: Error) => {
    // If Redis refuses the database, ioredis would continue in database 0. To prevent this, make ioredis reconnect before it
    // sends a command.
    if (isRefusedDatabase(error)) (commands as Redis).disconnect(true)
    events.onError(error)
  })
  commands.on('ready', events.onReady)
  commands.on('close', events.onLost)
  const stopWatching = isCluster(commands) ? watchMasters(commands, events) : ignore
  const unsubscribe = isCluster(commands) ? subscribeInCluster(commands, events) : subscribe(commands, events)
  return {
    commands,
    async reconnect() {
      // Redis replies in the order of the commands, so this reply is the last one.
      await commands.ping().catch(ignore)
      commands.disconnect(true)
    },
    async close() {
      stopWatching()
      unsubscribe()
      const timer = setTimeout(() => commands.disconnect(), QUIT_MS)
      await commands.quit().catch(() => commands.disconnect())
      clearTimeout(timer)
      for (const sentinel of sentinels) sentinel.disconnect()
    }
  }
}

/** The parsed `redis.url`, with the TLS options instead of a boolean. */
type Target = Omit<RedisUrl, 'tls'> & { readonly tls: ReturnType<typeof tlsOptions> | undefined }

type IoRedis = Pick<typeof import('ioredis'), 'Cluster' | 'Redis' | 'SentinelConnector'>

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster
}

function openSingle(ioredis: IoRedis, address: Target, events: RedisEvents, sentinels: Set<Redis>): Redis {
  const { kind, hosts, masterName, sentinelUsername, sentinelPassword, tls } = address
  const target: RedisOptions =
    kind === 'sentinel'
      ? {
          sentinels: [...hosts],
          name: masterName as string,
          // With this option, the sentinels tell ioredis about a new master, so that all processes leave the old master at the
          // same time.
          failoverDetector: true,
          Connector: trackingConnector(ioredis, sentinels),
          sentinelReconnectStrategy: retryStrategy,
          ...(sentinelUsername !== undefined && { sentinelUsername }),
          ...(sentinelPassword !== undefined && { sentinelPassword }),
          ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls })
        }
      : { ...hosts[0] }
  const options = { ...commonOptions(address), ...target, enableOfflineQueue: false, retryStrategy }
  return guardSockets(new ioredis.Redis(options), events.onReplyTooLong)
}

/**
 * Returns a connector that adds each of its connections to `sentinels`, so that `close` can close them. ioredis itself does not
 * always close the connections of its failover detector. Each connection also gets an error listener. Without the listener,
 * ioredis would write a line to the standard error output for every lost connection. The socket to the master gets an error
 * listener too, for the reason that `guardSockets` gives.
 */
function trackingConnector({ SentinelConnector }: IoRedis, sentinels: Set<Redis>): RedisOptions['Connector'] {
  const original = SentinelConnector.prototype as unknown as { connectToSentinel(...args: unknown[]): Redis }
  return class TrackingConnector extends SentinelConnector {
    constructor(...parameters: ConstructorParameters<typeof SentinelConnector>) {
      super(...parameters)
      const connectToSentinel = (...args: unknown[]) => {
        const sentinel = original.connectToSentinel.apply(this as never, args)
        sentinels.add(guardSockets(sentinel))
        return sentinel.on('error', ignore).on('end', () => sentinels.delete(sentinel))
      }
      Object.assign(this, { connectToSentinel })
    }

    override async connect(...parameters: Parameters<typeof SentinelConnector.prototype.connect>) {
      return (await super.connect(...parameters)).on('error', ignore)
    }
  } as unknown as RedisOptions['Connector']
}

function openCluster({ Cluster }: IoRedis, address: Target, events: RedisEvents): Cluster {
  const options: ClusterOptions = {
    redisOptions: commonOptions(address),
    enableOfflineQueue: false,
    // A pipeline with commands for several slots fails as a whole if the cluster is moving one of the slots.
    enableAutoPipelining: false,
    clusterRetryStrategy: retryStrategy,
    // If ioredis 6.0 is closed while it reads the slots, it continues to read them for ever, and the process does not end. So
    // `watchMasters` reads the slots instead.
    slotsRefreshInterval: 0,
    slotsRefreshTimeout: CONNECT_MS,
    // A certificate is issued for a host name, but ioredis would replace the name with an IP address before TLS checks the
    // certificate. This function keeps the name.
    ...(address.tls && { dnsLookup: (host, callback) => callback(null, host) })
  }
  return new Cluster([...address.hosts], options).on('+node', node => guardSockets(node, events.onReplyTooLong))
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
    // Every request sends a command. Pipelining sends the commands of concurrent requests together.
    enableAutoPipelining: true,
    // When a connection is lost, its commands fail immediately, because the client does not know which of them can be repeated
    // safely.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // The ready check needs INFO, which is often forbidden. `connection.ts` probes with the compare-and-swap script instead.
    enableReadyCheck: false
  } satisfies RedisOptions
}

/**
 * Watches each socket of a client:
 * - A reply or message that is too long closes the connection, before it needs memory.
 * - A TLS connection can emit an error after its end, for example the alert after the client has aborted the handshake. ioredis no
 *   longer listens then, so without an error listener, the error would end the process.
 */
function guardSockets(client: Redis, onReplyTooLong: () => void = ignore): Redis {
  return (
    client
      // ioredis creates the socket after this event, but in the same turn of the event loop. So wait for the next turn.
      .on('connecting', () => setImmediate(() => client.stream?.on('error', ignore)))
      // With sentinels there is no socket before this event. Data arrives only after it.
      .on('connect', () => {
        const { stream } = client
        const isTooLong = createReplyLimit()
        stream.on('data', (chunk: Buffer) => {
          if (stream.destroyed || !isTooLong(chunk)) return
          onReplyTooLong()
          stream.destroy()
        })
      })
  )
}

function retryStrategy(times: number): number {
  return Math.min(50 * times, MAX_RETRY_DELAY_MS) + Math.random() * 50
}

/**
 * Opens a second connection for messages, because in RESP2, a subscribed connection cannot send other commands. Returns a
 * function that closes the second connection.
 */
function subscribe(commands: Redis, events: RedisEvents): () => void {
  const { channels, onMessage, onSubscribed, onSubscribeFailed } = events
  // Channels do not belong to a database, so this connection need not select a database.
  const subscriber = guardSockets(commands.duplicate({ enableAutoPipelining: false, db: 0 }))
  let failures = 0
  let lastError = new Error('connection lost')
  const failed = (error: Error) => onSubscribeFailed?.(error)
  subscriber.on('error', (error: Error) => {
    lastError = error
  })
  subscriber.on('message', onMessage)
  subscriber.on('ready', () =>
    subscriber.subscribe(...channels).then(() => {
      failures = 0
      onSubscribed?.()
    }, failed)
  )
  // If Redis has only one free connection, it closes the second one as soon as it is open. A single lost connection is no
  // failure, because the client opens a new one.
  subscriber.on('close', () => {
    failures++
    if (failures >= FAILED_SUBSCRIPTIONS && commands.status === 'ready') failed(lastError)
  })
  const heartbeat = setInterval(() => subscriber.ping().catch(ignore), PING_INTERVAL_MS).unref()
  return () => {
    clearInterval(heartbeat)
    subscriber.disconnect()
  }
}

/**
 * Reads the slots of a cluster once a second, and calls `onNodeChange` if its masters have changed since the last time. Returns a
 * function that stops this.
 */
function watchMasters(cluster: Cluster, events: RedisEvents): () => void {
  let known: string | undefined
  cluster.on('refresh', () => {
    const masters = cluster.nodes('master').map(({ options }) => `${options.host}:${options.port}`)
    const current = masters.sort().join(' ')
    if (known !== undefined && known !== current) events.onNodeChange?.()
    known = current
  })
  const timer = setInterval(() => cluster.refreshSlotsCache(), NOTICE_MASTER_MS)
  return () => clearInterval(timer)
}

function subscribeInCluster(cluster: Cluster, events: RedisEvents): () => void {
  const { channels, onMessage, onSubscribed, onSubscribeFailed } = events
  cluster.on('message', onMessage)
  cluster.on('ready', () => cluster.subscribe(...channels).then(onSubscribed, onSubscribeFailed ?? ignore))
  return () => {}
}

function ignore(): void {}
