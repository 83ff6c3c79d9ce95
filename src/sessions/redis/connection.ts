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
import { isNodeUnusable, isReply, isWrongType, reasonOf } from './redis-client.js'

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

export interface Connection {
  /**
   * Sends a command and returns its reply.
   * @throws StoreUnavailableError
   */
  send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T>
  /** Replaces the listener. */
  listen(next: ConnectionListener): void
  /** Returns the time at which the last connection opened, on the monotonic clock. Returns undefined before the first connection. */
  connectedAt(): number | undefined
  /**
   * True from the start of the process until the first connection, but at most for 30 seconds. Until then, this process does not
   * know which sessions were logged out.
   */
  isStarting(): boolean
  /**
   * True if the reply to a command was too long within the last hour. Another one would close the connection of all sessions
   * again, so the length of a value must be read first.
   */
  mayBeTooLong(): boolean
  /** False if Redis is unavailable or rejects writes. */
  isAvailable(): boolean
  close(): Promise<void>
}

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
export function openConnection(options: ConnectionOptions): Connection {
  const { clock } = options
  const { commandMs, startMs } = { ...CONNECTION_TIMING, ...options.timing }
  const sinceStartMs = startStopwatch(clock)
  const state = createState()
  const outage = createOutageReport(options.log, clock)
  const health = createHealth({ ...options, state, outage, commandMs, client: () => client, startRecovery })
  const subscription = createSubscriptionReport(options.log)
  let listener: ConnectionListener = NOBODY
  let client: RedisClient | undefined
  let connectedAt: number | undefined
  let sinceTooLongMs = () => Number.POSITIVE_INFINITY

  function startRecovery(): void {
    connectedAt = clock.monotonic()
    listener.connected()
  }

  health.startConnecting(startMs)
  const opening = options
    .open({
      channels: [options.channel],
      onReady: health.probe,
      onLost: health.connectionLost,
      onError: state.noteError,
      // This process had no subscription until now, so it may have missed a `lost` message, which asks it to restore a session.
      // Restore all sessions, as after a new connection.
      onSubscribed() {
        subscription.began()
        listener.connected()
      },
      onSubscribeFailed: subscription.failed,
      onReplyTooLong() {
        sinceTooLongMs = startStopwatch(clock)
      },
      // The new master of a slot may lack the last writes of the old master, so the store must restore sessions.
      onNodeChange: () => state.is('up') && startRecovery(),
      onMessage: (_channel, text) => listener.message(text)
    })
    .then(
      opened => {
        client = opened
        health.probe()
      },
      error => health.goDown(reasonOf(error))
    )

  return {
    async send(command) {
      await state.untilConnected()
      if (!state.is('up') || !client) throw new StoreUnavailableError('redis')
      try {
        return await within(commandMs, command(client.commands), clock)
      } catch (error) {
        if (isWrongType(error)) throw new StoreUnavailableError('unreadable')
        health.commandFailed(error)
        throw new StoreUnavailableError('redis')
      }
    },
    listen(next) {
      listener = next
    },
    connectedAt: () => connectedAt,
    isStarting: () => !state.hasBeenUp() && sinceStartMs() < START_MS,
    mayBeTooLong: () => sinceTooLongMs() < SUSPICIOUS_MS,
    isAvailable: state.isAvailable,
    async close() {
      if (state.is('closed')) return
      health.close()
      listener = NOBODY
      await opening
      await client?.close()
    }
  }
}

/** Holds the state of the connection, and the commands that wait for a connection. */
function createState() {
  let current: State = 'connecting'
  // The reason why Redis rejects writes although the connection works, for example OOM, NOREPLICAS or READONLY. Reads still work.
  let rejection: string | undefined
  let lastError: Error | undefined
  let hasBeenUp = false
  const waiting = new Set<() => void>()

  function change(next: State): void {
    if (next === 'up' && current === 'up') return
    current = next
    hasBeenUp ||= next === 'up'
    for (const resume of waiting) resume()
    waiting.clear()
  }

  return {
    change,
    is: (state: State) => current === state,
    hasBeenUp: () => hasBeenUp,
    isRejecting: () => rejection !== undefined,
    isAvailable: () => current !== 'down' && rejection === undefined,
    /** Returns the milliseconds until the next probe, or undefined if no probe is needed. */
    probeDelayMs(): number | undefined {
      if (current === 'connecting') return PROBE_CONNECTING_MS
      return current === 'down' || (current === 'up' && rejection !== undefined) ? PROBE_INTERVAL_MS : undefined
    },
    rejectWrites(reason: string): void {
      rejection = reason
    },
    noteError(error: Error): void {
      lastError = error
    },
    /** Returns why there is no connection. */
    lastReason: () => (lastError ? reasonOf(lastError) : 'no_connection'),
    /** Returns true if Redis did not accept writes until now. */
    acceptWrites(): boolean {
      const isNew = current !== 'up' || rejection !== undefined
      rejection = undefined
      lastError = undefined
      change('up')
      return isNew
    },
    async untilConnected(): Promise<void> {
      while (current === 'connecting') await new Promise<void>(resolve => waiting.add(resolve))
    }
  }
}

interface HealthOptions extends Pick<ConnectionOptions, 'probe' | 'isCluster' | 'clock'> {
  readonly state: ReturnType<typeof createState>
  readonly outage: ReturnType<typeof createOutageReport>
  readonly commandMs: number
  /** Returns undefined until the client is loaded. */
  readonly client: () => RedisClient | undefined
  /** Called after each new connection, and when Redis accepts writes again. */
  readonly startRecovery: () => void
}

/** Learns from probes and from the errors of commands whether Redis can be used, and changes the state. */
function createHealth({ state, outage, probe, isCluster, clock, commandMs, client, startRecovery }: HealthOptions) {
  let isProbing = false
  let stopConnectTimer = () => {}
  let stopProbeTimer = () => {}

  function startConnecting(ms: number): void {
    state.change('connecting')
    stopConnectTimer()
    stopConnectTimer = clock.after(ms, () => goDown(state.lastReason()))
    scheduleProbe()
  }

  function goDown(reason: string): void {
    if (state.is('down') || state.is('closed')) return
    stopConnectTimer()
    state.change('down')
    outage.began(reason)
    scheduleProbe()
  }

  /** The store must restore sessions after a new connection, and if Redis rejected writes until now. */
  function goUp(): void {
    if (state.is('closed')) return
    stopConnectTimer()
    outage.ended()
    if (state.acceptWrites()) startRecovery()
  }

  async function handleRejection(error: unknown): Promise<void> {
    if (state.is('closed')) return
    const reason = reasonOf(error)
    if (isNodeUnusable(error)) return goDown(reason)
    // Redis still serves reads, so commands are still sent.
    state.rejectWrites(reason)
    outage.began(reason)
    // After a failover, the old master is read-only, and a new connection leads to the new master. If the new connection leads to
    // a read-only Redis again, use it for reads until the next probe.
    if (reason === 'READONLY' && state.is('up') && !isCluster) {
      startConnecting(commandMs)
      isProbing = true
      await client()?.reconnect()
      isProbing = false
      return
    }
    stopConnectTimer()
    state.change('up')
    scheduleProbe()
  }

  function scheduleProbe(): void {
    stopProbeTimer()
    const delayMs = state.probeDelayMs()
    if (delayMs !== undefined) stopProbeTimer = clock.after(delayMs, probeAndSchedule)
  }

  function probeAndSchedule(): void {
    void tryProbe().then(scheduleProbe)
  }

  /** Never rejects. */
  async function tryProbe(): Promise<void> {
    const commands = client()?.commands
    if (isProbing || !commands || state.is('closed')) return
    isProbing = true
    try {
      await within(commandMs, probe(commands), clock)
      goUp()
    } catch (error) {
      if (isReply(error)) await handleRejection(error)
      else if (error instanceof TimeLimitError) goDown('timeout')
      else connectionLost()
    } finally {
      isProbing = false
    }
  }

  function connectionLost(): void {
    if (state.is('up')) startConnecting(commandMs)
  }

  return {
    startConnecting,
    goDown,
    connectionLost,
    probe: () => void tryProbe(),
    commandFailed(error: unknown): void {
      // One slow command, or one slot that a cluster is moving, does not mean that Redis is unavailable, so let a probe decide.
      if (error instanceof TimeLimitError || isCluster) probeAndSchedule()
      else if (!isReply(error)) connectionLost()
      // If Redis rejects writes, probes are already scheduled. Each rejected write would otherwise delay the next probe.
      else if (!state.isRejecting()) void handleRejection(error)
    },
    close(): void {
      state.change('closed')
      stopConnectTimer()
      stopProbeTimer()
    }
  }
}

/** Logs once when Redis becomes unavailable, and once when it is available again. */
function createOutageReport(log: ConnectionOptions['log'], clock: Clock) {
  let since: number | undefined

  return {
    began(reason: string): void {
      if (since !== undefined) return
      since = clock.monotonic()
      const message = 'Redis is unavailable. This server keeps retrying.'
      log.warn({ event: 'redis_unavailable', error_code: reason }, message)
    },
    ended(): void {
      if (since === undefined) return
      const unavailable_ms = Math.round(clock.monotonic() - since)
      log.info({ event: 'redis_available', unavailable_ms }, 'Redis is available again')
      since = undefined
    }
  }
}

/** Logs once when this process gets no messages. */
function createSubscriptionReport(log: ConnectionOptions['log']) {
  let hasFailed = false

  return {
    began(): void {
      hasFailed = false
    },
    failed(error: Error): void {
      if (hasFailed) return
      hasFailed = true
      const message =
        'This process gets no messages from other processes. Redis may forbid SUBSCRIBE, or have no free connection (maxclients).'
      log.warn({ event: 'redis_subscription_failed', error_code: reasonOf(error) }, message)
    }
  }
}
