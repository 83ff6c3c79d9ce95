/** Reads and changes the results of refreshes and code exchanges that are stored in Redis for later requests. */
import type { Logger } from 'pino'
import { CoordinationError } from './coordination.js'
import type { LocalStore } from './local-store.js'
import type { RedisLink } from './redis-link.js'
import type { HeldResult } from './redis-publisher.js'
import { NO_RUN, type RedisScripts } from './redis-scripts.js'
import { newRunId, type ResultSeal, runOf, versionOf } from './result-seal.js'

export interface RedisResults {
  /**
   * Decrypts the stored result of `key`.
   * @throws CoordinationError `unreadable` if the text cannot be decrypted
   */
  open<T>(key: string, text: string): { readonly value: T; readonly isCheckpoint: boolean }
  /** See Coordination. */
  peek<T>(key: string): Promise<T | undefined>
  /** See Coordination. */
  update<T>(key: string, change: (kept: T) => T | undefined): Promise<T | undefined>
  /** Logs that the data of `key` cannot be read, and creates the error that the caller throws. */
  unreadable(key: string): CoordinationError
}

// An attempt fails only if another process changes the result between our read and our write.
const MAX_UPDATE_ATTEMPTS = 20

export function createRedisResults(
  link: Pick<RedisLink, 'send'>,
  scripts: RedisScripts,
  seal: ResultSeal,
  local: LocalStore<HeldResult>,
  { log, whenAway }: { readonly log: Pick<Logger, 'error'>; readonly whenAway: 'wait' | 'alone' }
): RedisResults {
  function unreadable(key: string): CoordinationError {
    const kind = key.slice(0, key.indexOf(':'))
    const message =
      'Data in Redis cannot be read. It has the wrong type, or this process does not have the secret that encrypted it.'
    log.error({ event: 'stored_data_unreadable', kind }, message)
    return new CoordinationError('unreadable', 5)
  }

  function open<T>(key: string, text: string) {
    try {
      return seal.open<T>(key, text)
    } catch {
      throw unreadable(key)
    }
  }

  async function sendForUpdate<T>(command: Parameters<typeof link.send<T>>[0]): Promise<T> {
    try {
      return await link.send(command)
    } catch {
      throw new CoordinationError('store', 2)
    }
  }

  async function updateInRedis<T>(key: string, change: (kept: T) => T | undefined): Promise<T | undefined> {
    for (let attempt = 1; attempt <= MAX_UPDATE_ATTEMPTS; attempt++) {
      const text = await sendForUpdate(scripts.peek(key))
      if (text === null) return undefined
      const { value } = open<T>(key, text)
      const changed = change(value)
      if (changed === undefined) return value
      const held = { value: changed, run: newRunId(), refused: NO_RUN, hasTokens: true, version: versionOf(text) + 1 }
      const leftMs = await sendForUpdate(scripts.replace(key, runOf(text), seal.seal(key, held)))
      if (leftMs <= 0) continue
      local.results.set(key, { ...held, storedAt: performance.now() }, leftMs)
      return changed
    }
    throw new CoordinationError('pending')
  }

  /** Changes the result in the memory of this process. The changed result is written to Redis when Redis comes up. */
  function updateLocally<T>(key: string, change: (kept: T) => T | undefined): T | undefined {
    const held = local.results.get(key) as (HeldResult & { readonly value: T }) | undefined
    const changed = held && change(held.value)
    if (!held || changed === undefined) return held?.value
    const version = (held.version ?? 0) + 1
    local.results.replace(key, { ...held, value: changed, run: newRunId(), version, storedAt: performance.now() })
    return changed
  }

  return {
    open,
    unreadable,
    async peek<T>(key: string) {
      const held = () => local.results.get(key)?.value as T | undefined
      try {
        const text = await link.send(scripts.peek(key))
        return text === null ? held() : seal.open<T>(key, text).value
      } catch {
        return held()
      }
    },
    async update<T>(key: string, change: (kept: T) => T | undefined) {
      try {
        return await updateInRedis(key, change)
      } catch (error) {
        const isAway = error instanceof CoordinationError && error.problem === 'store'
        if (isAway && whenAway === 'alone') return updateLocally(key, change)
        throw error
      }
    }
  }
}
