/**
 * Decides whether Redis can be used now. A Redis in trouble must cost each request next to nothing, and no lock may be
 * granted by a Redis that may have lost the lock of somebody else.
 */
import type { Logger } from 'pino'
import { within } from '../support/within.js'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import { isConnectionTrouble, isWrongType, RedisUnavailableError, reasonOf, StoredDataError } from './redis-errors.js'
import type { RedisHealth } from './redis-health.js'

/**
 * - `connecting`: at the start, and for a moment after a connection broke; commands wait for the outcome
 * - `up`: commands are sent, each with a time limit
 * - `down`: commands fail at once, and Redis is probed in the background
 */
export type LinkState = 'connecting' | 'up' | 'down' | 'closed'

export interface RedisLink {
  /** @throws RedisUnavailableError; StoredDataError when only this key is at fault */
  send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T>
  /** Sends a command whatever the state is, because some work although Redis is full or read-only. Best effort. */
  attempt(command: (commands: RedisCommands) => Promise<unknown>): void
  /**
   * Waits until Redis may grant locks: it is up, and since it came up every replica has had the time to publish what it
   * holds. False if that does not come about by `deadline`, on the clock of `performance.now()`.
   */
  isLockable(deadline: number): Promise<boolean>
  /** Changes whenever Redis becomes unusable or has lost data. */
  generation(): number
  /**
   * To be awaited between taking a lock and using it.
   * @param generation from before the lock was asked for
   * @throws RedisUnavailableError when Redis may have lost somebody's lock or result by then
   */
  ensureNothingLost(generation: number): Promise<void>
  state(): LinkState
  close(): Promise<void>
}

export interface RedisLinkParts {
  readonly open: (events: Pick<RedisEvents, 'onReady' | 'onLost' | 'onTrouble'>) => Promise<RedisClient>
  readonly health: RedisHealth
  /** Called whenever Redis comes up, and when it has lost data. Locks are granted again after it has resolved. */
  readonly onUp: (event: UpEvent) => Promise<void>
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly timing: LinkTiming
}

export interface UpEvent {
  /** When Redis was last known to be up, on the clock of `performance.now()`. */
  readonly lostAt: number
  readonly hasLostData: boolean
}

export interface LinkTiming {
  /** The time limit of a command. A Redis that is slower than this counts as down. */
  readonly commandMs: number
  /** The time limit of the first connection, which includes loading the client. */
  readonly startMs: number
  /** How often Redis is inspected, even if nothing else is sent to it. */
  readonly checkMs: number
  /** How long after the loss of Redis a request that needs a lock waits for it. */
  readonly patienceMs: number
  /** How long after Redis came up no lock is granted: as long as the slowest replica needs to reconnect and publish. */
  readonly settleMs: number
}

const PROBE_CONNECTING_MS = 25
const PROBE_DOWN_MS = 500

export function createRedisLink({ open, health, onUp, log, timing }: RedisLinkParts): RedisLink {
  const { commandMs, startMs, checkMs, patienceMs, settleMs } = timing
  let state: LinkState = 'connecting'
  let client: RedisClient | undefined
  let trouble: Error | undefined
  let isInspecting = false
  let lostAt = performance.now()
  let downSince: number | undefined
  let settling: Promise<void> | undefined
  let isReconnected = true
  let generation = 0
  let connectTimer: NodeJS.Timeout | undefined
  let probeTimer: NodeJS.Timeout | undefined
  const listeners = new Set<() => void>()

  function change(next: LinkState) {
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
  function changed(ms: number): Promise<void> {
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

  function beConnecting(ms: number) {
    change('connecting')
    clearTimeout(connectTimer)
    connectTimer = setTimeout(() => goDown(trouble ? reasonOf(trouble) : 'no connection'), ms)
    connectTimer.unref()
    scheduleProbe()
  }

  function goDown(reason: string) {
    if (state === 'down' || state === 'closed') return
    clearTimeout(connectTimer)
    change('down')
    downSince ??= performance.now()
    log.warn({ event: 'redis_away', reason }, 'Redis cannot be used: refreshes wait until it is back')
    scheduleProbe()
  }

  function comeUp(isIntact: boolean) {
    if (state === 'up' || state === 'closed') return
    clearTimeout(connectTimer)
    trouble = undefined
    if (downSince !== undefined) {
      log.info({ event: 'redis_back', away_ms: Math.round(performance.now() - downSince) }, 'Redis is back')
      downSince = undefined
    }
    settle(!isIntact)
    change('up')
  }

  /** No lock is granted until this process and the others have published what Redis may lack. */
  function settle(hasLostData: boolean) {
    // A new connection is inspected at once by every replica. Data that disappears behind an open connection is noticed by
    // each replica at its next inspection.
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

  function settleIfLost(isIntact: boolean) {
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
    if (state === 'connecting' || state === 'down') await inspect(comeUp)
    scheduleProbe()
  }

  /** One inspection at a time, since a slow Redis may take longer to answer than the interval between two of them. */
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

  function lost() {
    isReconnected = true
    if (state === 'up') beConnecting(commandMs)
  }

  function onTrouble(error: Error) {
    trouble = error
  }

  beConnecting(startMs)
  const opening = open({ onReady: probe, onLost: lost, onTrouble }).then(
    opened => {
      client = opened
      void probe()
    },
    error => goDown(reasonOf(error))
  )

  const checking = setInterval(() => {
    if (state !== 'up') return
    void inspect(settleIfLost)
  }, checkMs)
  checking.unref()

  async function settledConnection(): Promise<void> {
    while (state === 'connecting') await changed(startMs)
  }

  async function use<T>(operation: (client: RedisClient) => Promise<T>): Promise<T> {
    await settledConnection()
    if (state !== 'up' || !client) throw new RedisUnavailableError()
    try {
      return await within(commandMs, operation(client))
    } catch (error) {
      if (isWrongType(error)) throw new StoredDataError()
      if (isConnectionTrouble(error)) lost()
      else goDown(reasonOf(error))
      throw new RedisUnavailableError()
    }
  }

  return {
    send: command => use(({ commands }) => command(commands)),
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
        await changed(leftMs)
      }
    },
    generation: () => generation,
    async ensureNothingLost(before) {
      const hasEvicted = await use(client => health.mayHaveEvicted(client))
      if (hasEvicted) await inspect(settleIfLost)
      if (hasEvicted || generation !== before) throw new RedisUnavailableError()
    },
    state: () => state,
    async close() {
      if (state === 'closed') return
      change('closed')
      clearTimeout(connectTimer)
      clearTimeout(probeTimer)
      clearInterval(checking)
      await opening
      await client?.close()
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms).unref())
}
