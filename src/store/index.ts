/**
 * The session store: what the server knows of each session beside the cookie. It grants the locks of refreshes, keeps the
 * newest session for browsers with an old cookie, and remembers logouts. `scripts.ts` explains an entry of the store.
 */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../config/settings.js'
import type { Keyring } from '../session/keyring.js'
import type { SessionRecord } from '../session/record.js'
import type { Clock } from '../support/clock.js'
import type { Tracing } from '../telemetry/tracing.js'
import { createMemoryIndexScripts, createRedisIndexScripts } from './index-scripts.js'
import { createMemoryScripts } from './memory-scripts.js'
import { createMessageSeal } from './messages.js'
import { createProcessStore, type StoreLink } from './process-store.js'
import { openRedisClient, type RedisClient, type RedisEvents } from './redis-client.js'
import { LINK_TIMING, openRedisLink, type RedisLink } from './redis-link.js'
import { createRedisScripts } from './redis-scripts.js'
import type { SendCommand } from './script-runner.js'
import { LOCK_MS, type ScriptTimes, SETTLE_MS } from './scripts.js'
import { createSessionIndex } from './session-index.js'
import type { SessionStore } from './session-store.js'
import { tracedScripts } from './traced-scripts.js'

export interface StoreParts {
  readonly keyring: Keyring
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Undefined if tracing is off. */
  readonly tracing?: Tracing | undefined
}

// The `state` of a login is valid for 10 minutes. The lock of its code exchange may last for another minute.
const LOGIN_MS = 900_000

/**
 * Creates the store and returns at once. The connection to Redis opens in the background, and calls wait for it.
 * @example const place = await createStore(config, { keyring, clock, log }).look(session)
 */
export function createStore(config: Config, parts: StoreParts): SessionStore {
  const { redisUrl, session, refresh, platform } = config
  const keepsIndex = platform.backChannelLogout
  const { clock, log } = parts
  const times: ScriptTimes = {
    // An entry outlives every cookie of its session, so a missing entry always means a loss.
    entryMs: 2 * session.maxAgeSeconds * 1000,
    loginMs: LOGIN_MS,
    keepMs: refresh.keepSeconds * 1000,
    lockMs: LOCK_MS,
    settleMs: redisUrl === undefined ? 0 : SETTLE_MS
  }
  if (redisUrl === undefined) {
    const scripts = createMemoryScripts<SessionRecord>(clock.now, times)
    const index = keepsIndex ? createSessionIndex(createMemoryIndexScripts(clock.now, times), parts.keyring) : undefined
    return createProcessStore({ kind: 'memory', scripts, index, connect: () => NO_LINK, clock, times, log })
  }
  const open = (events: RedisEvents) => openRedisClient(redisUrl, events, config.redisTls)
  return createRedisStore({ ...parts, open, prefix: prefixOf(config), times, keepsIndex })
}

export interface RedisStoreParts extends StoreParts {
  readonly open: (events: RedisEvents) => Promise<RedisClient>
  /** The beginning of all keys and of the channel. */
  readonly prefix: string
  readonly times: ScriptTimes
  /** True if the store has an index of the sessions of each person. */
  readonly keepsIndex?: boolean
}

/** Creates the store of a process that shares a Redis with others. */
export function createRedisStore(parts: RedisStoreParts): SessionStore {
  const { open, prefix, times, keyring, clock, log, keepsIndex = false, tracing } = parts
  const channel = channelOf(prefix)
  const messages = createMessageSeal({ keyring, channel, now: clock.now })
  let redis: RedisLink
  const send: SendCommand = command => redis.send(command)
  const scripts = createRedisScripts(send, prefix, keyring.sealer('stored session'), times)
  return createProcessStore({
    kind: 'redis',
    scripts: tracing ? tracedScripts(scripts, tracing) : scripts,
    index: keepsIndex ? createSessionIndex(createRedisIndexScripts(send, prefix, times), keyring) : undefined,
    connect({ restore, receive }) {
      redis = openRedisLink({
        open: events =>
          open({
            ...events,
            channels: [channel],
            onMessage(_channel, text) {
              const message = messages.open(text)
              if (message) receive(message)
            }
          }),
        probe: commands => commands.set(`${prefix}probe`, '1', 'PX', 1000),
        restore,
        log,
        clock,
        timing: { ...LINK_TIMING, settleMs: times.settleMs }
      })
      return {
        ...redis,
        publish: message => redis.attempt(commands => commands.publish(channel, messages.seal(message)))
      }
    },
    clock,
    times,
    log
  })
}

/** The channel for the messages between the processes of a deployment. */
export function channelOf(prefix: string): string {
  return `${prefix}messages`
}

/**
 * Returns the prefix of all Redis keys. It is derived from the client id, the provider and the mode. All replicas of a
 * deployment therefore have the same prefix, and other applications can use the same Redis without a conflict.
 */
export function prefixOf({ mode, platform }: Config): string {
  const identity = JSON.stringify([platform.clientId, platform.issuer, platform.tokenEndpoint, mode])
  return `platform-auth:${createHash('sha256').update(identity).digest('base64url').slice(0, 10)}:`
}

/** Without Redis, there are no other processes. */
const NO_LINK: StoreLink = {
  isSettled: () => true,
  generation: () => 0,
  isAway: () => false,
  publish: async () => true,
  async close() {}
}
