/** Knows if Redis can be used now. It probes Redis in the background and detects that Redis has lost data. */
import type { Logger } from 'pino'
import { within } from '../support/within.js'
import type { RedisClient, RedisEvents } from './redis-client.js'
import { isConnectionError, reasonOf } from './redis-errors.js'
import type { RedisHealth } from './redis-health.js'

/**
 * - `connecting`: the state at the start, and for a moment after the connection is lost. Commands wait for the next state.
 * - `up`: commands are sent, each with a time limit.
 * - `down`: commands fail at once, and Redis is probed in the background.
 * - `closed`: this process is stopping.
 */
export type ConnectionState = 'connecting' | 'up' | 'down' | 'closed'

export interface RedisConnection {
  state(): ConnectionState
  /** The client, or undefined until it has been loaded. */
  client(): RedisClient | undefined
  /** The time at which Redis was last known to be up, from `performance.now()`. */
  lostAt(): number
  /** Returns a number that increases whenever Redis becomes unusable or has lost data. */
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
  /** Called when Redis comes up, just before the state changes, and when it has lost data. */
  readonly onUsable: (event: UsableEvent) => void
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly timing: ConnectionTiming
}

/** Redis has come up, or has lost data while it was up. */
export interface UsableEvent {
  /** The time at which Redis was last known to be up, from `performance.now()`. */
  readonly lostAt: number
  readonly hasLostData: boolean
  /** True at the first event after a connection was opened. */
  readonly isNewConnection: boolean
}

export interface ConnectionTiming {
  /** The time limit of a command. A Redis that is slower than this counts as down. */
  readonly commandMs: number
  /** The time limit of the first connection, which includes loading the client. */
  readonly startMs: number
  /** The interval of inspections. Redis is inspected even if no other commands are sent. */
  readonly checkMs: number
}

const PROBE_CONNECTING_MS = 25
const PROBE_DOWN_MS = 500

/** Opens the connection in the background. */
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
    log.warn({ event: 'redis_away', reason }, 'Redis cannot be used now. The server reconnects by itself.')
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

  /** Runs one inspection at a time, because a slow Redis may need longer than the interval between two inspections. */
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
