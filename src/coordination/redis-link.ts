/**
 * Decides if Redis can be used now. Requests must not be slowed down by a failing Redis. No lock may be granted while
 * Redis may have lost the lock of another replica. /
 */
import type { Logger } from 'pino'
import { within } from '../support/within.js'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import { isConnectionTrouble, isWrongType, RedisUnavailableError, reasonOf, StoredDataError } from './redis-errors.js'
import type { RedisHealth } from './redis-health.js'

/**
 * - `connecting`: the state at the start, and for a moment after the connection is lost. Commands wait for the next
 *   state.
 * - `up`: commands are sent, each with a time limit.
 * - `down`: commands fail at once, and Redis is probed in the background. /
 */
export type LinkState = 'connecting' | 'up' | 'down' | 'closed'

export interface RedisLink {
  /**
   * @throws RedisUnavailableError if Redis cannot be used
   * @throws StoredDataError if only the data under this key is wrong
   */
  send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T>
  /** Sends a command in every state, because some commands work even if Redis is full or read-only. Best effort. */
  attempt(command: (commands: RedisCommands) => Promise<unknown>): void
  /**
   * Waits until Redis may grant locks. Redis must be up, and every replica must have had time to publish its locks and
   * results again. Returns false if this takes longer than `deadline`, a time of `performance.now()`.
   */
  isLockable(deadline: number): Promise<boolean>
  /** Returns a number that increases whenever Redis becomes unusable or has lost data. */
  generation(): number
  /**
   * Call this after acquiring a lock and before using it.
   * @param generation the value of `generation()` before the lock was requested
   * @throws RedisUnavailableError if Redis may have lost a lock or result since then
   */
  ensureNothingLost(generation: number): Promise<void>
  state(): LinkState
  close(): Promise<void>
}

export interface RedisLinkParts {
  readonly open: (events: Pick<RedisEvents, 'onReady' | 'onLost' | 'onError'>) => Promise<RedisClient>
  readonly health: RedisHealth
  /** Called when Redis comes up and when it has lost data. No lock is granted until the returned promise settles. */
  readonly onUp: (event: UpEvent) => Promise<void>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly timing: LinkTiming
}

export interface UpEvent {
  /** The time at which Redis was last known to be up, from `performance.now()`. */
  readonly lostAt: number
  readonly hasLostData: boolean
}

export interface LinkTiming {
  /** The time limit of a command. A Redis that is slower than this counts as down. */
  readonly commandMs: number
  /** The time limit of the first connection, which includes loading the client. */
  readonly startMs: number
  /** The interval of inspections. Redis is inspected even if no other commands are sent. */
  readonly checkMs: number
  /** A request that needs a lock waits for Redis until this long after Redis was lost. */
  readonly patienceMs: number
  /** No lock is granted for this long after Redis comes up, so that the slowest replica can reconnect and publish. */
  readonly settleMs: number
}

const PROBE_CONNECTING_MS = 25
const PROBE_DOWN_MS = 500

export function createRedisLink({ open, health, onUp, log, timing }: RedisLinkParts): RedisLink {
  const { commandMs, startMs, checkMs, patienceMs, settleMs } = timing
  let state: LinkState = 'connecting'
  let client: RedisClient | undefined
  let lastError: Error | undefined
  let isInspecting = false
  let lostAt = performance.now()
  let downSince: number | undefined
  let settling: Promise<void> | undefined
  let isReconnected = true
  let generation = 0
  let connectTimer: NodeJS.Timeout | undefined
  let probeTimer: NodeJS.Timeout | undefined
  const listeners = new Set<() => void>()

  function changeState(next: LinkState) {
    if (state === 'up' && next !== 'up') {
      lostAt = performance.now()
      generation++
    }
    state = next
    notify()
  }

  function notify() {
    for (const listener of listeners) listener()
  }

  /** Resolves at the next change of state, or after `ms` milliseconds. */
  function nextChange(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(proceed, ms)
      function proceed() {
        clearTimeout(timer)
        listeners.delete(proceed)
        resolve()
      }
      listeners.add(proceed)
    })
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
    log.warn({ event: 'redis_away', reason }, 'Redis cannot be used now; the server reconnects by itself')
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
    settle(!isIntact)
    changeState('up')
  }

  /**
   * Stops granting locks until all replicas have had time to publish the locks and results that Redis may have lost.
   */
  function settle(hasLostData: boolean) {
    // Every replica inspects a new connection at once. If data disappears while the connection stays open, each replica
    // notices at its next inspection, which can take `checkMs`.
    const noticedMs = hasLostData && !isReconnected ? checkMs : 0
    isReconnected = false
    const current = Promise.all([pause(noticedMs + settleMs), onUp({ lostAt, hasLostData }).catch(() => {})]).then(
      () => {
        if (settling !== current) return
        settling = undefined
        notify()
      }
    )
    settling = current
  }

  function settleIfDataWasLost(isIntact: boolean) {
    if (isIntact || state !== 'up') return
    generation++
    settle(true)
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
  async function inspect(then: (isIntact: boolean) => void) {
    if (isInspecting || !client) return
    isInspecting = true
    try {
      then(await within(commandMs, health.inspect(client)))
    } catch (error) {
      if (!isConnectionTrouble(error)) goDown(reasonOf(error))
    } finally {
      isInspecting = false
    }
  }

  function handleLostConnection() {
    isReconnected = true
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
    if (state !== 'up') return
    void inspect(settleIfDataWasLost)
  }, checkMs)
  inspectionTimer.unref()

  async function settledConnection(): Promise<void> {
    while (state === 'connecting') await nextChange(startMs)
  }

  async function withClient<T>(operation: (client: RedisClient) => Promise<T>): Promise<T> {
    await settledConnection()
    if (state !== 'up' || !client) throw new RedisUnavailableError()
    try {
      return await within(commandMs, operation(client))
    } catch (error) {
      if (isWrongType(error)) throw new StoredDataError()
      if (isConnectionTrouble(error)) handleLostConnection()
      else goDown(reasonOf(error))
      throw new RedisUnavailableError()
    }
  }

  return {
    send: command => withClient(({ commands }) => command(commands)),
    attempt(command) {
      void settledConnection().then(() => client && command(client.commands).catch(() => {}))
    },
    async isLockable(deadline) {
      for (;;) {
        if (state === 'closed') return false
        if (state === 'up' && !settling) return true
        const until = state === 'up' ? deadline : Math.min(deadline, lostAt + patienceMs)
        const leftMs = until - performance.now()
        if (leftMs <= 0) return false
        await nextChange(leftMs)
      }
    },
    generation: () => generation,
    async ensureNothingLost(before) {
      const hasEvicted = await withClient(client => health.mayHaveEvicted(client))
      if (hasEvicted) await inspect(settleIfDataWasLost)
      if (hasEvicted || generation !== before) throw new RedisUnavailableError()
    },
    state: () => state,
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

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms).unref())
}
