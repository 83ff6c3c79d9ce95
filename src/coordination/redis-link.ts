/**
 * Sends commands to Redis. Each command has a time limit, and while Redis is down, commands fail at once. A failing
 * Redis therefore does not slow down requests. After Redis has come up or lost data, locks are delayed, because Redis
 * may have lost a lock that another replica owns.
 */
import { within } from '../support/within.js'
import { createChangeSignal } from './change-signal.js'
import type { RedisClient, RedisCommands } from './redis-client.js'
import {
  type ConnectionState,
  type ConnectionTiming,
  openRedisConnection,
  type RedisConnectionParts,
  type UsableEvent
} from './redis-connection.js'
import { isWrongType, RedisUnavailableError, StoredDataError } from './redis-errors.js'
import { createRedisSettling, type SettlingTiming } from './redis-settling.js'

export interface RedisLink {
  /**
   * Sends a command and returns its reply.
   * @throws RedisUnavailableError if Redis cannot be used
   * @throws StoredDataError if the key of the command has a value of the wrong type
   */
  send<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T>
  /**
   * Sends a command even if the state is `down`, because some commands work while Redis is full or read-only. Best
   * effort.
   */
  attempt(command: (commands: RedisCommands) => Promise<unknown>): void
  /**
   * Waits until Redis is up and every replica has had time to write its locks and results again. Then returns true.
   * Returns false at `deadline`, when this process closes the connection, or when Redis has been unusable for
   * `patienceMs`.
   * @param deadline a time of `performance.now()`
   */
  isLockable(deadline: number): Promise<boolean>
  /** Returns a number that increases whenever Redis becomes unusable or is found to have lost data. */
  generation(): number
  /**
   * Call this after acquiring a lock and before using it.
   * @param generation the value of `generation()` before the lock was requested
   * @throws RedisUnavailableError if Redis may have lost a lock or result since then
   */
  ensureNothingLost(generation: number): Promise<void>
  state(): ConnectionState
  close(): Promise<void>
}

export interface RedisLinkParts extends Pick<RedisConnectionParts, 'open' | 'health' | 'log'> {
  /** Called when Redis has come up or has lost data. No lock is granted until the returned promise settles. */
  readonly onUsable: (event: UsableEvent) => Promise<void>
  readonly timing: LinkTiming
}

export interface LinkTiming extends ConnectionTiming, SettlingTiming {
  /** A request that needs a lock stops waiting when Redis has been unusable for this many milliseconds. */
  readonly patienceMs: number
}

export function createRedisLink({ open, health, onUsable, log, timing }: RedisLinkParts): RedisLink {
  const { commandMs, startMs, patienceMs } = timing
  const changes = createChangeSignal()
  const settling = createRedisSettling(onUsable, changes.notify, timing)
  const connection = openRedisConnection({
    open,
    health,
    onChange: changes.notify,
    onUsable: settling.start,
    log,
    timing
  })
  const { state } = connection

  async function untilConnected(): Promise<void> {
    while (state() === 'connecting') await changes.next(startMs)
  }

  async function withClient<T>(operation: (client: RedisClient) => Promise<T>): Promise<T> {
    await untilConnected()
    const client = connection.client()
    if (state() !== 'up' || !client) throw new RedisUnavailableError()
    try {
      return await within(commandMs, operation(client))
    } catch (error) {
      if (isWrongType(error)) throw new StoredDataError()
      connection.handleFailure(error)
      throw new RedisUnavailableError()
    }
  }

  return {
    send: command => withClient(({ commands }) => command(commands)),
    attempt(command) {
      void untilConnected().then(() => {
        const client = connection.client()
        if (client) command(client.commands).catch(() => {})
      })
    },
    async isLockable(deadline) {
      for (;;) {
        if (state() === 'closed') return false
        if (state() === 'up' && settling.isOver()) return true
        const until = state() === 'up' ? deadline : Math.min(deadline, connection.lostAt() + patienceMs)
        const leftMs = until - performance.now()
        if (leftMs <= 0) return false
        await changes.next(leftMs)
      }
    },
    generation: connection.generation,
    async ensureNothingLost(before) {
      const hasEvicted = await withClient(client => health.mayHaveEvicted(client))
      if (hasEvicted) await connection.inspect()
      if (hasEvicted || connection.generation() !== before) throw new RedisUnavailableError()
    },
    state,
    close: connection.close
  }
}
