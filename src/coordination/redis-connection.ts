/** Tracks the state of the connection to Redis. Regular probes detect if Redis can be used and if it has lost data. */
import type { Logger } from 'pino'
import { within } from '../support/within.js'
import type { RedisClient, RedisEvents } from './redis-client.js'
import { isConnectionError, reasonOf } from './redis-errors.js'
import type { RedisHealth } from './redis-health.js'

/**
 * - `connecting`: the state at the start, and for a short time after the connection is lost. Commands wait until it
 *   changes.
 * - `up`: commands are sent, each with a time limit.
 * - `down`: commands fail at once, and Redis is probed in the background.
 * - `closed`: this process is stopping.
 */
export type ConnectionState = 'connecting' | 'up' | 'down' | 'closed'

export interface RedisConnection {
  state(): ConnectionState
  /** The client, or undefined until it has been loaded. */
  client(): RedisClient | undefined
  /**
   * Returns the time of `performance.now()` at which Redis last became unusable. At first, this is the time of the
   * start.
   */
  lostAt(): number
  /** Returns a number that increases whenever Redis becomes unusable or is found to have lost data. */
  generation(): number
  /** Changes the state after a command failed with `error`. */
  handleFailure(error: unknown): void
  /** Checks if Redis has lost data. Does nothing if an inspection is already running. */
  inspect(): Promise<void>
  close(): Promise<void>
}

export interface RedisConnectionParts {
  readonly open: (events: Pick<RedisEvents, 'onReady' | 'onLost' | 'onError'>) => Promise<RedisClient>
  readonly health: RedisHealth
  /** Called after each change of the state. */
  readonly onChange: () => void
  /**
   * Called just before the state changes to `up`. Also called when an inspection finds in the state `up` that Redis has
   * lost data.
   */
  readonly onUsable: (event: UsableEvent) => void
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly timing: ConnectionTiming
}

/** Describes either that Redis has come up, or that it was found to have lost data in the state `up`. */
export interface UsableEvent {
  /** The time of `performance.now()` at which Redis last became unusable. At first, this is the time of the start. */
  readonly lostAt: number
  readonly hasLostData: boolean
  /** True if this is the first event since the current connection was opened. */
  readonly isNewConnection: boolean
}

export interface ConnectionTiming {
  /** The time limit of a command. If a command exceeds it, the state becomes `down`. */
  readonly commandMs: number
  /** The time limit for loading the client and opening the first connection. */
  readonly startMs: number
  /** The interval at which Redis is checked for lost data. */
  readonly checkMs: number
}

const PROBE_CONNECTING_MS = 25
const PROBE_DOWN_MS = 500

/** Starts to open the connection and returns at once. */
export function openRedisConnection(parts: RedisConnectionParts): RedisConnection {
  const { open, health, onChange, onUsable, log, timing } = parts
  const { commandMs, startMs, checkMs } = timing
  let state: ConnectionState = 'connecting'
  let client: RedisClient | undefined
  let lastError: Error | undefined
  let isInspecting = false
  let isNewConnection = true
  let lostAt = performance.now()
  let downSince: number | undefined
  let generation = 0
  let connectTimer: NodeJS.Timeout | undefined
  let probeTimer: NodeJS.Timeout | undefined

  function changeState(next: ConnectionState) {
    if (state === 'up' && next !== 'up') {
      lostAt = performance.now()
      generation++
    }
    state = next
    onChange()
  }

  function startConnecting(ms: number) {
    changeState('connecting')
    clearTimeout(connectTimer)
    connectTimer = setTimeout(() => goDown(lastError ? reasonOf(lastError) : 'no connection'), ms)
    connectTimer.unref()
    scheduleProbe()
  }

  function goDown(reason: string) {
    if (state === 'down' || state === 'closed') return
    clearTimeout(connectTimer)
    changeState('down')
    downSince ??= performance.now()
    log.warn({ event: 'redis_away', reason }, 'Redis cannot be used now. This server keeps trying to use it again.')
    scheduleProbe()
  }

  function goUp(isIntact: boolean) {
    if (state === 'up' || state === 'closed') return
    clearTimeout(connectTimer)
    lastError = undefined
    if (downSince !== undefined) {
      log.info({ event: 'redis_back', away_ms: Math.round(performance.now() - downSince) }, 'Redis is back')
      downSince = undefined
    }
    reportUsable(!isIntact)
    changeState('up')
  }

  function reportLostData(isIntact: boolean) {
    if (isIntact || state !== 'up') return
    generation++
    reportUsable(true)
  }

  function reportUsable(hasLostData: boolean) {
    onUsable({ lostAt, hasLostData, isNewConnection })
    isNewConnection = false
  }

  function scheduleProbe() {
    clearTimeout(probeTimer)
    if (state !== 'connecting' && state !== 'down') return
    probeTimer = setTimeout(probe, state === 'connecting' ? PROBE_CONNECTING_MS : PROBE_DOWN_MS)
    probeTimer.unref()
  }

  async function probe() {
    if (state === 'connecting' || state === 'down') await inspect(goUp)
    scheduleProbe()
  }

  /**
   * Does nothing if an inspection is already running. A slow Redis may need longer than the interval of inspections.
   */
  async function inspect(handleResult: (isIntact: boolean) => void) {
    if (isInspecting || !client) return
    isInspecting = true
    try {
      handleResult(await within(commandMs, health.inspect(client)))
    } catch (error) {
      if (!isConnectionError(error)) goDown(reasonOf(error))
    } finally {
      isInspecting = false
    }
  }

  function handleLostConnection() {
    isNewConnection = true
    if (state === 'up') startConnecting(commandMs)
  }

  function onError(error: Error) {
    lastError = error
  }

  startConnecting(startMs)
  const opening = open({ onReady: probe, onLost: handleLostConnection, onError }).then(
    opened => {
      client = opened
      void probe()
    },
    error => goDown(reasonOf(error))
  )

  const inspectionTimer = setInterval(() => {
    if (state === 'up') void inspect(reportLostData)
  }, checkMs)
  inspectionTimer.unref()

  return {
    state: () => state,
    client: () => client,
    lostAt: () => lostAt,
    generation: () => generation,
    handleFailure(error) {
      if (isConnectionError(error)) handleLostConnection()
      else goDown(reasonOf(error))
    },
    inspect: () => inspect(reportLostData),
    async close() {
      if (state === 'closed') return
      changeState('closed')
      clearTimeout(connectTimer)
      clearTimeout(probeTimer)
      clearInterval(inspectionTimer)
      await opening
      await client?.close()
    }
  }
}
