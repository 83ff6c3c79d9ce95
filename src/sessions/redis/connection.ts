/**
 * The connection to Redis. Each command has a time limit, and while Redis is unavailable, commands fail immediately. A failing
 * Redis therefore does not slow down requests. After each new connection, the listener is called, so that the store restores what
 * Redis may have lost.
 */
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.js'
import { startStopwatch, TimeLimitError, within } from '../../base/clock.js'
import { StoreUnavailableError } from '../cells.js'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import { isNodeUnusable, isReply, isWrongType, reasonOf } from './redis-errors.js'

/**
 * - `connecting`: the state at the start, while the client reconnects, and for a short time after a connection was lost. Commands
 *   wait for a connection.
 * - `up`: commands are sent
 * - `down`: commands fail immediately, and the connection is probed in the background
 * - `closed`: this process is stopping
 */
type State = 'connecting' | 'up' | 'down' | 'closed'

interface ConnectionListener {
  /** Called when Redis may have lost its last writes, for example after each new connection. */
  connected(): void
  /** Called with each string that a process has published. */
  message(text: string): void
}

const NOBODY: ConnectionListener = { connected() {}, message() {} }

interface ConnectionOptions {
  readonly open: (events: RedisEvents) => Promise<RedisClient>
  readonly channel: string
  /** Rejects if Redis does not accept writes. */
  readonly probe: (commands: RedisCommands) => Promise<unknown>
  readonly isCluster: boolean
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock: Clock
  readonly timing?: Partial<ConnectionTiming> | undefined
}

/** All times are in milliseconds. */
export interface ConnectionTiming {
  /** The time limit of a command. */
  readonly commandMs: number
  /** The time limit for loading the client and opening the first connection. */
  readonly startMs: number
}

const CONNECTION_TIMING: ConnectionTiming = { commandMs: 1000, startMs: 2000 }

// A load balancer should not wait longer for Redis, because valid tokens work without it.
const START_MS = 30_000
const SUSPICIOUS_MS = 3_600_000
const PROBE_CONNECTING_MS = 25
const PROBE_INTERVAL_MS = 500

/** Starts to open the connection and returns immediately. */
export function openConnection({ open, channel, probe, isCluster, log, clock, timing }: ConnectionOptions) {
  const { commandMs, startMs } = { ...CONNECTION_TIMING, ...timing }
  const sinceStartMs = startStopwatch(clock)
  const report = createReport(log, clock)
  /** Each function lets a command continue that waits for a connection. */
  const waiting = new Set<() => void>()
  let listener: ConnectionListener = NOBODY
  let client: RedisClient | undefined
  let state: State = 'connecting'
  let hasBeenUp = false
  // The reason why Redis rejects writes although the connection works, for example OOM, NOREPLICAS or READONLY. Reads still work.
  let rejection: string | undefined
  let lastError: Error | undefined
  let connectedAt: number | undefined
  let sinceTooLongMs = () => Number.POSITIVE_INFINITY
  let isProbing = false
  let stopConnectTimer = () => {}
  let stopProbeTimer = () => {}

  function change(next: State): void {
    if (next === 'up' && state === 'up') return
    state = next
    hasBeenUp ||= next === 'up'
    for (const resume of waiting) resume()
    waiting.clear()
  }

  function startConnecting(ms: number): void {
    change('connecting')
    stopConnectTimer()
    stopConnectTimer = clock.after(ms, () => goDown(lastError ? reasonOf(lastError) : 'no_connection'))
    scheduleProbe()
  }

  function connectionLost(): void {
    if (state === 'up') startConnecting(commandMs)
  }

  function goDown(reason: string): void {
    if (state === 'down' || state === 'closed') return
    stopConnectTimer()
    change('down')
    report.outageBegan(reason)
    scheduleProbe()
  }

  function goUp(): void {
    if (state === 'closed') return
    stopConnectTimer()
    report.outageEnded()
    const isRecovery = state !== 'up' || rejection !== undefined
    rejection = undefined
    lastError = undefined
    change('up')
    if (isRecovery) startRecovery()
  }

  /** The store must restore sessions after a new connection, and if Redis rejected writes until now. */
  function startRecovery(): void {
    connectedAt = clock.monotonic()
    listener.connected()
  }

  async function handleRejection(error: unknown): Promise<void> {
    if (state === 'closed') return
    const reason = reasonOf(error)
    if (isNodeUnusable(error)) return goDown(reason)
    // Redis still serves reads, so commands are still sent.
    rejection = reason
    report.outageBegan(reason)
    // After a failover, the old master is read-only, and a new connection leads to the new master. If the new connection leads to
    // a read-only Redis again, use it for reads until the next probe.
    if (reason === 'READONLY' && state === 'up' && !isCluster) {
      startConnecting(commandMs)
      isProbing = true
      await client?.reconnect()
      isProbing = false
      return
    }
    stopConnectTimer()
    change('up')
    scheduleProbe()
  }

  function scheduleProbe(): void {
    stopProbeTimer()
    if (state === 'closed' || (state === 'up' && rejection === undefined)) return
    const delayMs = state === 'connecting' ? PROBE_CONNECTING_MS : PROBE_INTERVAL_MS
    stopProbeTimer = clock.after(delayMs, probeAndSchedule)
  }

  function probeAndSchedule(): void {
    void tryProbe().then(scheduleProbe)
  }

  /** Learns whether Redis can be used. Never rejects. */
  async function tryProbe(): Promise<void> {
    if (isProbing || !client || state === 'closed') return
    isProbing = true
    try {
      await within(commandMs, probe(client.commands), clock)
      goUp()
    } catch (error) {
      if (isReply(error)) await handleRejection(error)
      else if (error instanceof TimeLimitError) goDown('timeout')
      else connectionLost()
    } finally {
      isProbing = false
    }
  }

  function commandFailed(error: unknown): void {
    // One slow command, or one slot that a cluster is moving, does not mean that Redis is unavailable, so let a probe decide.
    if (error instanceof TimeLimitError || isCluster) probeAndSchedule()
    else if (!isReply(error)) connectionLost()
    // If Redis rejects writes, probes are already scheduled. Each rejected write would otherwise delay the next probe.
    else if (rejection === undefined) void handleRejection(error)
  }

  startConnecting(startMs)
  const opening = open({
    channels: [channel],
    onReady: () => void tryProbe(),
    onLost: connectionLost,
    onError(error) {
      lastError = error
    },
    // This process had no subscription until now, so it may have missed a `lost` message, which asks it to restore a session.
    // Restore all sessions, as after a new connection.
    onSubscribed() {
      report.subscribed()
      listener.connected()
    },
    onSubscribeFailed: report.subscriptionFailed,
    onReplyTooLong() {
      sinceTooLongMs = startStopwatch(clock)
    },
    // The new master of a slot may lack the last writes of the old master, so the store must restore sessions.
    onNodeChange: () => state === 'up' && startRecovery(),
    onMessage: (_channel, text) => listener.message(text)
  }).then(
    opened => {
      client = opened
      void tryProbe()
    },
    error => goDown(reasonOf(error))
  )

  return {
    /**
     * Sends a command and returns its reply.
     * @throws StoreUnavailableError
     */
    async send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T> {
      while (state === 'connecting') await new Promise<void>(resolve => waiting.add(resolve))
      if (state !== 'up' || !client) throw new StoreUnavailableError('redis')
      try {
        return await within(commandMs, command(client.commands), clock)
      } catch (error) {
        if (isWrongType(error)) throw new StoreUnavailableError('unreadable')
        commandFailed(error)
        throw new StoreUnavailableError('redis')
      }
    },
    /** Replaces the listener. */
    listen(next: ConnectionListener): void {
      listener = next
    },
    /** Returns the time at which the last connection opened, on the monotonic clock. Returns undefined before the first connection. */
    connectedAt: () => connectedAt,
    /**
     * True from the start of the process until the first connection, but at most for 30 seconds. Until then, this process does not
     * know which sessions were logged out.
     */
    isStarting: (): boolean => !hasBeenUp && sinceStartMs() < START_MS,
    /**
     * True if the reply to a command was too long within the last hour. Another one would close the connection of all sessions
     * again, so the length of a value must be read first.
     */
    mayBeTooLong: (): boolean => sinceTooLongMs() < SUSPICIOUS_MS,
    /** False if Redis is unavailable or rejects writes. */
    isAvailable: (): boolean => state !== 'down' && rejection === undefined,
    async close(): Promise<void> {
      if (state === 'closed') return
      change('closed')
      stopConnectTimer()
      stopProbeTimer()
      listener = NOBODY
      await opening
      await client?.close()
    }
  }
}

/** Logs each outage and its end once, and once that this process gets no messages. */
function createReport(log: ConnectionOptions['log'], clock: Clock) {
  let outageSince: number | undefined
  let isSubscribed = true

  return {
    outageBegan(reason: string): void {
      if (outageSince !== undefined) return
      outageSince = clock.monotonic()
      const message = 'Redis is unavailable. This server keeps retrying.'
      log.warn({ event: 'redis_unavailable', error_code: reason }, message)
    },
    outageEnded(): void {
      if (outageSince === undefined) return
      const unavailable_ms = Math.round(clock.monotonic() - outageSince)
      log.info({ event: 'redis_available', unavailable_ms }, 'Redis is available again')
      outageSince = undefined
    },
    subscribed(): void {
      isSubscribed = true
    },
    subscriptionFailed(error: Error): void {
      if (!isSubscribed) return
      isSubscribed = false
      const message =
        'This process gets no messages from other processes. Redis may forbid SUBSCRIBE, or have no free connection (maxclients).'
      log.warn({ event: 'redis_subscription_failed', error_code: reasonOf(error) }, message)
    }
  }
}
