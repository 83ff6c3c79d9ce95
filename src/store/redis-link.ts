/**
 * The connection to Redis. Each command has a time limit, and while Redis is away, commands fail at once, so a failing
 * Redis does not slow down requests. After every connection, all processes store again what they remember, because Redis
 * may have lost its last writes. Locks are granted after that.
 */
import type { Logger } from 'pino'
import { type Clock, wait } from '../support/clock.js'
import { TimeLimitError, within } from '../support/within.js'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import {
  isNodeUnusable,
  isReply,
  isWrongType,
  RedisUnavailableError,
  reasonOf,
  StoredDataError
} from './redis-errors.js'

/**
 * - `connecting`: the state at the start, and for a short time after a connection is lost. Commands wait.
 * - `up`: commands are sent
 * - `down`: commands fail at once, and the connection is probed in the background
 * - `closed`: this process is stopping
 */
type State = 'connecting' | 'up' | 'down' | 'closed'

export interface RedisLink {
  /**
   * Sends a command and returns its reply.
   * @throws RedisUnavailableError if Redis cannot be used, or rejects the command
   * @throws StoredDataError if a key has a value of the wrong type
   */
  send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T>
  /**
   * Sends a command even in the state `down`, because some commands work on a slow Redis. Never rejects. Resolves with
   * false if there was no reply.
   */
  attempt(command: (commands: RedisCommands) => Promise<unknown>): Promise<boolean>
  /**
   * True if a lock may be taken: Redis is up and accepts writes, and all processes had time to store again what they
   * remember.
   */
  isSettled(): boolean
  /** Returns a number that increases whenever Redis may have lost a lock. */
  generation(): number
  isAway(): boolean
  close(): Promise<void>
}

export interface RedisLinkParts {
  /** Writes a key that expires soon, to find out if Redis accepts writes. */
  readonly probe: (commands: RedisCommands) => Promise<unknown>
  readonly open: (events: Omit<RedisEvents, 'channels' | 'onMessage'>) => Promise<RedisClient>
  /** Stores again what this process remembers. Called after every connection. */
  readonly restore: () => Promise<void>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock: Clock
  readonly timing: LinkTiming
}

/** All times are in milliseconds. */
export interface LinkTiming {
  /** The time limit of a command. After that, Redis counts as away. */
  readonly commandMs: number
  /** The time limit for loading the client and opening the first connection. */
  readonly startMs: number
  /** The time between a connection and the first lock. */
  readonly settleMs: number
}

export const LINK_TIMING = { commandMs: 1000, startMs: 2000 } as const

const PROBE_CONNECTING_MS = 25
const PROBE_INTERVAL_MS = 500

/** Starts to open the connection and returns at once. */
export function openRedisLink({ open, probe, restore, log, clock, timing }: RedisLinkParts): RedisLink {
  const { commandMs, startMs, settleMs } = timing
  let state: State = 'connecting'
  let client: RedisClient | undefined
  let lastError: Error | undefined
  // The reason for which Redis rejects writes although the connection works, for example OOM or NOPERM.
  let rejection: string | undefined
  let awaySince: number | undefined
  let generation = 0
  let isSettled = false
  let settling: Promise<void> | undefined
  let isProbing = false
  let stopConnectTimer = () => {}
  let stopProbeTimer = () => {}
  const waiting = new Set<() => void>()

  function changeState(next: State): void {
    if (state === 'up') {
      generation++
      isSettled = false
      settling = undefined
    }
    state = next
    for (const resume of waiting) resume()
    waiting.clear()
  }

  function reportAway(reason: string): void {
    if (awaySince !== undefined) return
    awaySince = clock.monotonic()
    log.warn({ event: 'redis_away', reason }, 'Redis cannot be used now. This server keeps trying to use it again.')
  }

  function reportBack(): void {
    if (awaySince === undefined) return
    const away_ms = Math.round(clock.monotonic() - awaySince)
    log.info({ event: 'redis_back', away_ms }, 'Redis is back')
    awaySince = undefined
  }

  function startConnecting(ms: number): void {
    changeState('connecting')
    stopConnectTimer()
    stopConnectTimer = clock.after(ms, () => goDown(lastError ? reasonOf(lastError) : 'no connection'))
    scheduleProbe()
  }

  function goDown(reason: string): void {
    if (state === 'down' || state === 'closed') return
    stopConnectTimer()
    changeState('down')
    reportAway(reason)
    scheduleProbe()
  }

  function goUp(): void {
    if (state === 'closed') return
    stopConnectTimer()
    lastError = undefined
    rejection = undefined
    reportBack()
    if (state !== 'up') changeState('up')
    settle()
  }

  function handleRejection(error: unknown): void {
    if (state === 'closed') return
    // The client reconnects after each rejection of a read-only Redis, so every command would wait for a connection.
    if (isNodeUnusable(error)) {
      goDown(reasonOf(error))
      return
    }
    // Reading works on a full Redis, and some writes do, so the state stays `up`.
    rejection = reasonOf(error)
    reportAway(rejection)
    if (state !== 'up') changeState('up')
    scheduleProbe()
  }

  // A process that reconnects later than this one still has time to store its locks and sessions before the first lock.
  function settle(): void {
    isSettled = false
    const current = Promise.all([wait(clock, settleMs), restore().catch(() => {})]).then(() => {
      if (settling === current) isSettled = true
    })
    settling = current
  }

  function needsProbe(): boolean {
    return state === 'connecting' || state === 'down' || (state === 'up' && rejection !== undefined)
  }

  function scheduleProbe(): void {
    stopProbeTimer()
    if (!needsProbe()) return
    const delayMs = state === 'connecting' ? PROBE_CONNECTING_MS : PROBE_INTERVAL_MS
    stopProbeTimer = clock.after(delayMs, () => void tryProbe().then(scheduleProbe))
  }

  async function tryProbe(): Promise<void> {
    if (isProbing || !client || !needsProbe()) return
    isProbing = true
    try {
      await within(commandMs, probe(client.commands), clock)
      goUp()
    } catch (error) {
      if (isReply(error)) handleRejection(error)
      else if (error instanceof TimeLimitError) goDown('timeout')
    } finally {
      isProbing = false
    }
  }

  function handleLostConnection(): void {
    if (state === 'up') startConnecting(commandMs)
  }

  function handleFailure(error: unknown): void {
    if (error instanceof TimeLimitError) goDown('timeout')
    else if (isReply(error)) handleRejection(error)
    else handleLostConnection()
  }

  async function untilConnected(): Promise<void> {
    while (state === 'connecting') await new Promise<void>(resolve => waiting.add(resolve))
  }

  startConnecting(startMs)
  const opening = open({
    onReady: () => void tryProbe(),
    onLost: handleLostConnection,
    onError(error) {
      lastError = error
    },
    onSubscribed() {
      if (state === 'up') void restore().catch(() => {})
    },
    // A cluster has replaced a node, and the new one may not have the last writes of the old one.
    onNodeChange() {
      if (state !== 'up') return
      generation++
      settle()
    }
  }).then(
    opened => {
      client = opened
      void tryProbe()
    },
    error => goDown(reasonOf(error))
  )

  return {
    async send(command) {
      await untilConnected()
      if (state !== 'up' || !client) throw new RedisUnavailableError()
      try {
        return await within(commandMs, command(client.commands), clock)
      } catch (error) {
        if (isWrongType(error)) throw new StoredDataError()
        handleFailure(error)
        throw new RedisUnavailableError()
      }
    },
    async attempt(command) {
      await untilConnected()
      if (!client || state === 'closed') return false
      return within(commandMs, command(client.commands), clock).then(
        () => true,
        () => false
      )
    },
    isSettled: () => state === 'up' && isSettled && rejection === undefined,
    generation: () => generation,
    isAway: () => state === 'down' || rejection !== undefined,
    async close() {
      if (state === 'closed') return
      changeState('closed')
      stopConnectTimer()
      stopProbeTimer()
      await opening
      await client?.close()
    }
  }
}
