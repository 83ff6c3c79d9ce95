/**
 * Opens the sessions. Other folders import only this file. To understand the store, read these files in this order:
 * - `session-types.ts`: what the rest of the server sees of a session
 * - `transitions.ts`: the rules, as pure functions of a cell
 * - `cells.ts`: what a store must offer, and how a rule is applied; `memory-cells.ts` keeps cells in this process
 * - `store.ts`: applies the rules to sessions; `memory.ts` is what this process remembers of them
 * - `under-lease.ts`: the only code that acquires leases; `pause.ts` is the pause of all token requests
 * - `restores.ts`: stores again what Redis may have lost; `when-over.ts` tells what runs for a session that it is over
 * - `create-sessions.ts`: creates the sessions of one process from these parts
 * - `host-slots.ts`, `port-socket.ts`: find out whether the owner of a lease has died
 * - `redis/`: `redis-cells.ts` keeps cells in Redis; `connection.ts` is the state of the connection, `redis-client.ts` the client,
 *   with its limit for replies, its TLS options and its errors, and `redis-database.ts` the check of the database at the start
 * - `users/`: `user-sessions.ts` finds the sessions of a user, with the lists of `user-lists.ts` and the names of `user-names.ts`
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.js'
import { reasonOf } from '../base/failure-reasons.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { base64url } from '../base/text-encoding.js'
import { inSpan, type Tracing } from '../base/tracing.js'
import type { Config } from '../config/settings.js'
import type { RedisUrl } from '../config/types/redis-url.js'
import type { Keyring } from '../cookie/keyring.js'
import type { SessionRecord } from '../cookie/session-record.js'
import type { Message } from './cells.js'
import { createSessions } from './create-sessions.js'
import { createHostSlots } from './host-slots.js'
import { createMemoryCells, createMemoryValues } from './memory-cells.js'
import { type ConnectionTiming, openConnection } from './redis/connection.js'
import {
  createMessageSeal,
  createRedisCells,
  createRedisValues,
  createSwapScript,
  type SendCommand,
  sessionFormat
} from './redis/redis-cells.js'
import { openRedisClient } from './redis/redis-client.js'
import { type Cell, isLogin } from './transitions.js'
import { createUserSessions, type UserList } from './users/user-sessions.js'

export { ignoreUnavailable, StoreUnavailableError } from './cells.js'
export type { Sessions } from './create-sessions.js'
export { databaseAdvice, RedisDatabaseError, requireDatabase } from './redis/redis-database.js'
export type * from './session-types.js'
export type { Denial, End, RefusalSeries, Suspicion } from './transitions.js'
export type * from './users/user-sessions.js'

export interface StoreOptions {
  readonly keyring: Keyring
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Undefined if tracing is off. */
  readonly tracing?: Tracing | undefined
  readonly metrics?: Metrics
  /** Revokes a refresh token in the background. By default, nothing is revoked. */
  readonly revoke?: (refreshToken: string) => void
  /** The function that connects to Redis. The default is `openRedisClient`. */
  readonly open?: typeof openRedisClient
  /** All times are in milliseconds. */
  readonly timing?: Partial<ConnectionTiming & { readonly recoveryMs: number }>
}

/** `off` means that no Redis is configured, and `down` that it does not work at the moment. */
export type RedisStatus = 'up' | 'down' | 'off'

export type Stores = ReturnType<typeof createStores>

// Anybody can create the cell of a login by sending a made-up code, so such a cell has a short lifetime. But the cell must
// outlive the `state` of the login, which is valid for 10 minutes. The cell also stores that the login has ended, and without the
// cell, the same `state` could be used again.
const LOGIN_LIFETIME_MS = 900_000
const HOST_SLOT_LIFETIME_MS = 300_000
const USED_TOKEN_LIFETIME_MS = 1_200_000
const RECOVERY_MS = 2000
// If Redis has several nodes, the processes may notice a new master at different times, so the recovery time is longer.
const NODES_RECOVERY_MS = 5000

/**
 * Creates the store and returns immediately. The connection to Redis opens in the background, and calls to the store wait for it.
 * @example const { sessions } = createStores(config, { keyring, clock, log })
 */
export function createStores(config: Config, options: StoreOptions) {
  const { session } = config
  const { url: redisUrl } = config.redis
  const { keyring, clock, log, timing, revoke = () => {} } = options
  const maxAgeMs = session.inactivityTimeoutSeconds * 1000
  // A cell outlives every cookie of its session, so a missing cell always means data loss.
  const lifetimeMs = 2 * maxAgeMs
  const times = { clock, maxAgeMs, lifetimeMs }
  const maxLifetimeMs = session.maxLifetimeSeconds && session.maxLifetimeSeconds * 1000
  const sessionLifetimeMs = ({ entry }: Cell<SessionRecord>) => (isLogin(entry) ? LOGIN_LIFETIME_MS : lifetimeMs)
  const redis = redisUrl && openRedis(config, options)
  const cells = {
    sessions: redis
      ? createRedisCells(redis, sessionFormat(keyring.sealer('stored session', base64url), sessionLifetimeMs))
      : createMemoryCells(clock.now, sessionLifetimeMs),
    lists: values<UserList>('user', 'user sessions', lifetimeMs),
    names: values<readonly string[]>('user-name', 'user names', lifetimeMs),
    usedTokens: values<true>('logout-token', 'used logout token', USED_TOKEN_LIFETIME_MS),
    hostSlots: values<number>('host-slot', 'host slot', HOST_SLOT_LIFETIME_MS)
  }
  const hostSlots = createHostSlots({
    cells: cells.hostSlots,
    owner: randomUUID(),
    clock,
    log,
    hasRedis: redis !== undefined
  })
  const sessions = createSessions({
    ...times,
    maxLifetimeMs,
    cells: cells.sessions,
    me: hostSlots.me,
    hostSlots,
    recoveryMs: redisUrl ? (timing?.recoveryMs ?? (redisUrl.kind === 'single' ? RECOVERY_MS : NODES_RECOVERY_MS)) : 0,
    connectedAt: () => redis?.connection.connectedAt(),
    publish: async message => redis?.publish(message),
    revoke
  })
  const userSessions = config.platform.backchannelLogout
    ? createUserSessions({ ...times, ...cells, sessions, revoke, hasher: keyring.hasher('user sessions') })
    : undefined
  redis?.connection.listen({
    connected() {
      void hostSlots.announce()
      void sessions.restoreAll()
    },
    message(text) {
      const message = redis.openMessage(text)
      if (message) sessions.receive(message)
      if (message?.kind === 'lost') userSessions?.joinAgain(message.id)
    }
  })

  /** @param purpose the purpose for which the encryption keys are derived */
  function values<Value extends NonNullable<unknown>>(kind: string, purpose: string, lifetimeMs: number) {
    if (redis) return createRedisValues<Value>(redis, keyring.sealer(purpose, base64url), { kind, lifetimeMs })
    return createMemoryValues<Value>(clock.now, lifetimeMs)
  }

  return {
    sessions,
    /** Undefined unless `platform.backchannelLogout` is on. */
    userSessions,
    hostSlots,
    status: (): RedisStatus => (redis ? (redis.connection.isAvailable() ? 'up' : 'down') : 'off'),
    /** True while this process waits for its first connection to Redis, so that it should get no requests yet. */
    isStarting: (): boolean => redis?.connection.isStarting() ?? false,
    async close(): Promise<void> {
      sessions.close()
      userSessions?.close()
      hostSlots.close()
      await redis?.connection.close()
    }
  }
}

function openRedis(config: Config, options: StoreOptions) {
  const { keyring, clock, log, tracing, metrics = noMetrics, open = openRedisClient, timing } = options
  const prefix = prefixOf(config)
  const channel = channelOf(prefix)
  const redisUrl = config.redis.url as RedisUrl
  const messages = createMessageSeal(keyring.sealer('message', base64url), channel, clock.now)
  const script = createSwapScript(clock)
  const probeName = `${prefix}probe:${randomUUID()}`
  const connection = openConnection({
    open: events => open(redisUrl, events, config.redis),
    channel,
    probe: commands => script.probe(commands, probeName),
    isCluster: redisUrl.kind === 'cluster',
    log,
    clock,
    timing
  })
  const timed: SendCommand = async (name, command) => {
    const startedAt = performance.now()
    const report = (error?: string) => {
      const seconds = (performance.now() - startedAt) / 1000
      metrics.observe('redis_command_duration_seconds', seconds, { command: name, error })
    }
    try {
      const reply = await connection.send(command)
      report()
      return reply
    } catch (error) {
      report(reasonOf(error) ?? 'other')
      throw error
    }
  }
  const send: SendCommand = (name, command) =>
    tracing
      ? inSpan(tracing, name, { 'db.system.name': 'redis', 'db.operation.name': name }, () => timed(name, command))
      : timed(name, command)
  return {
    connection,
    prefix,
    channel,
    send,
    script,
    sealMessage: messages.seal,
    openMessage: messages.open,
    mayBeTooLong: connection.mayBeTooLong,
    async publish(message: Message): Promise<void> {
      await connection.send(commands => commands.publish(channel, messages.seal(message))).catch(() => {})
    }
  }
}

/** Returns the channel for the messages between the processes of a deployment. */
export function channelOf(prefix: string): string {
  return `${prefix}messages`
}

/**
 * Returns the prefix of all Redis keys. It is derived from the client id, the provider and the mode. All replicas of a deployment
 * therefore have the same prefix, and other applications can use the same Redis without a conflict. Ten characters keep the keys
 * short, and their 60 bits are enough to distinguish deployments.
 */
export function prefixOf({ mode, platform }: Config): string {
  const identity = JSON.stringify([platform.clientId, platform.issuer, platform.tokenEndpoint, mode])
  return `platform-auth:${createHash('sha256').update(identity).digest('base64url').slice(0, 10)}:`
}
