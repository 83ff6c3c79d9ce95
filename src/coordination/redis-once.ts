/**
 * Runs the work for a key in only one process at a time. A process must acquire a lock in Redis before it runs the
 * work. Other processes wait until the lock is released, and then get the stored result.
 */
import { CoordinationError, type Once, type OnceOptions, type Work } from './coordination.js'
import type { LocalStore } from './local-store.js'
import { StoredDataError } from './redis-errors.js'
import type { RedisLink } from './redis-link.js'
import type { HeldResult, RedisPublisher } from './redis-publisher.js'
import type { RedisResults } from './redis-results.js'
import type { OwnedLock, RedisRuns } from './redis-runs.js'
import { NO_RUN, type RedisScripts } from './redis-scripts.js'
import { newRunId, runOf } from './result-seal.js'
import type { Wakeups } from './wakeups.js'

/**
 * Returns a stored result if `accept` allows it. Otherwise, if another process is running the work, waits for its
 * result. Otherwise runs `work` and returns its result.
 */
export type RunInOneProcess = <T>(key: string, work: Work<T>, options: OnceOptions<T>) => Promise<Once<T>>

export interface RunInOneProcessParts {
  readonly link: RedisLink
  readonly scripts: RedisScripts
  readonly runs: RedisRuns
  readonly publisher: RedisPublisher
  readonly results: RedisResults
  readonly local: LocalStore<HeldResult>
  readonly wakeups: Wakeups
  /**
   * The setting `redisAway`. While Redis cannot be used, `wait` makes calls fail, so that clients repeat their requests
   * later, and `alone` runs the work without a lock.
   */
  readonly whenAway: 'wait' | 'alone'
  /** The time in milliseconds that a request waits for a lock that another replica owns. */
  readonly waitMs: number
}

// A waiter usually tries again when a message says that the lock was released. If the message is lost, it tries after
// this time.
const MAX_SLEEP_MS = 1000

export const acceptAny = () => true

export function createRunInOneProcess(parts: RunInOneProcessParts): RunInOneProcess {
  const { link, scripts, runs, publisher, results, local, wakeups, whenAway, waitMs } = parts

  async function perform<T>(lock: OwnedLock<T>, work: Work<T>): Promise<Once<T>> {
    const { key, run, refused } = lock
    try {
      const { value, keepMs, hasTokens = false } = await work(runs.start(lock))
      runs.end(key)
      const other = await publisher.publish(key, { value, run, refused, hasTokens }, keepMs)
      if (other === undefined) return { value, how: 'ran' }
      return { value: results.open<T>(key, other).value, how: 'joined' }
    } catch (error) {
      runs.end(key)
      publisher.releaseLater(key, run)
      throw error
    }
  }

  async function acquire(key: string, run: string, refused: string) {
    try {
      const generation = link.generation()
      const acquired = await link.send(scripts.acquire(key, run, refused))
      if (acquired.kind === 'mine') await link.ensureNothingLost(generation)
      return acquired
    } catch (error) {
      publisher.releaseLater(key, run)
      if (error instanceof StoredDataError) throw results.unreadable(key)
      return undefined
    }
  }

  /**
   * Handles a call while Redis cannot be used. A result in memory can be returned even then, because returning it does
   * not send a single-use refresh token to the identity provider.
   */
  async function runWithoutRedis<T>(key: string, work: Work<T>, accept: (kept: T) => boolean): Promise<Once<T>> {
    const held = local.results.get(key) as (HeldResult & { readonly value: T }) | undefined
    if (held && accept(held.value)) return { value: held.value, how: 'kept' }
    if (link.state() === 'closed') throw new CoordinationError('closing')
    if (whenAway === 'wait') throw new CoordinationError('store', 2)
    const lock = { key, run: newRunId(), refused: held?.run ?? NO_RUN, previous: held?.value, stalledOwnerMs: 0 }
    return perform({ ...lock, requestedAt: Number.POSITIVE_INFINITY }, work)
  }

  return async function runInOneProcess<T>(key: string, work: Work<T>, options: OnceOptions<T>): Promise<Once<T>> {
    const { accept = acceptAny, canWait = true } = options
    const deadline = performance.now() + (canWait ? waitMs : 0)
    let run = newRunId()
    let refused = NO_RUN
    let previous: T | undefined
    let hasWaited = false
    for (;;) {
      if (!(await link.isLockable(deadline))) return runWithoutRedis(key, work, accept)
      const waiter = wakeups.waiter(key)
      const requestedAt = performance.now()
      const acquired = await acquire(key, run, refused)
      if (acquired?.kind === 'held') {
        const leftMs = deadline - performance.now()
        if (leftMs <= 0) {
          waiter.cancel()
          throw new CoordinationError('pending', 2)
        }
        hasWaited = true
        await waiter.sleep(Math.min(acquired.leaseMs + 1, leftMs, MAX_SLEEP_MS))
        continue
      }
      waiter.cancel()
      if (!acquired) {
        // Redis has become unusable but may have granted the lock to this run id. In that case, `acquire` has already
        // arranged that the lock is released. The next attempt needs a new run id, because this release must not affect
        // the new attempt.
        run = newRunId()
        continue
      }
      const { stalledOwnerMs } = acquired
      if (acquired.kind === 'mine') {
        return perform({ key, run, refused, previous, stalledOwnerMs, requestedAt }, work)
      }
      const { value, isCheckpoint } = results.open<T>(key, acquired.text)
      if (hasWaited && !isCheckpoint) return { value, how: 'joined' }
      if (accept(value)) return { value, how: 'kept', ...(stalledOwnerMs > 0 && { stalledOwnerMs }) }
      refused = runOf(acquired.text)
      previous = value
    }
  }
}
