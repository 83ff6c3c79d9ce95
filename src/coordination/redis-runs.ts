import { CoordinationError, type Run } from './coordination.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/**
 * The active runs of this process. A run is one execution of the work for a key. The locks of all active runs are
 * extended regularly, so that no other process takes over.
 */
export interface RedisRuns {
  /** Creates the argument of the work, and extends the lock until `end` is called. */
  start<T>(lock: OwnedLock<T>): Run<T>
  end(key: string): void
  /** Extends all locks now. Acquires a lock again if Redis has lost it. */
  extendAll(): Promise<void>
  /** Stops extending the locks. */
  close(): void
}

export interface OwnedLock<T> {
  readonly key: string
  /** The id of the run that owns the lock. */
  readonly run: string
  /** The id of the earlier run whose result the caller did not accept, or NO_RUN. */
  readonly refused: string
  /** See `previous` of Run. */
  readonly previous: T | undefined
  /** See `stalledOwnerMs` of Run. */
  readonly stalledOwnerMs: number
  /** The time at which the lock was requested, from `performance.now()`. Infinity if the work runs without a lock. */
  readonly requestedAt: number
}

export interface RunTiming {
  /** The time for which a lock is owned after it was acquired or extended. */
  readonly leaseMs: number
  /** The time limit of a run. */
  readonly workMs: number
  /**
   * The time limit of one call to the identity provider. The lock must be owned for at least this time before the call.
   */
  readonly callMs: number
}

interface Owned {
  readonly run: string
  readonly refused: string
  /** The end of the lease, as a time of `performance.now()`. 0 if another run owns the lock. */
  ownedUntil: number
}

export function createRedisRuns(
  link: Pick<RedisLink, 'send'>,
  scripts: RedisScripts,
  seal: ResultSeal,
  { leaseMs, workMs, callMs }: RunTiming
): RedisRuns {
  const ownedLocks = new Map<string, Owned>()
  const extendTimer = setInterval(extendAll, leaseMs / 4)
  extendTimer.unref()

  async function extend(key: string, lock: Owned): Promise<void> {
    const requestedAt = performance.now()
    const extendLock = scripts.extend(key, lock.run, lock.refused)
    try {
      // The command may be sent after the run has ended. It must not acquire the lock again in this case.
      const isOurs = await link.send(async commands => ownedLocks.get(key) !== lock || extendLock(commands))
      lock.ownedUntil = isOurs ? Math.max(lock.ownedUntil, requestedAt + leaseMs) : 0
    } catch {
      // The lock is still owned until `ownedUntil`, and the next extension may succeed.
    }
  }

  async function extendAll() {
    await Promise.all([...ownedLocks].map(([key, lock]) => extend(key, lock)))
  }

  return {
    start({ key, run, refused, previous, stalledOwnerMs, requestedAt }) {
      const deadline = performance.now() + workMs
      const lock: Owned = { run, refused, ownedUntil: requestedAt + leaseMs }
      if (Number.isFinite(requestedAt)) ownedLocks.set(key, lock)
      const isLeaseLongEnough = () => lock.ownedUntil - performance.now() >= callMs
      return {
        stalledOwnerMs,
        previous,
        remainingMs: () => Math.max(1, Math.round(deadline - performance.now())),
        async checkpoint({ value, keepMs }) {
          const text = seal.seal(key, { run, hasTokens: true, value, isCheckpoint: true })
          await link.send(scripts.checkpoint(key, text, keepMs)).catch(() => {})
        },
        async ensureOwned() {
          if (isLeaseLongEnough()) return
          await extend(key, lock)
          if (!isLeaseLongEnough()) throw new CoordinationError('store')
        }
      }
    },
    end: key => void ownedLocks.delete(key),
    extendAll,
    close: () => clearInterval(extendTimer)
  }
}
