import { CoordinationError, type Run } from './coordination.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/** Extends the locks of this process. Each lock is extended until its run ends. */
export interface RedisRuns {
  start<T>(lock: OwnedLock<T>): Run<T>
  end(key: string): void
  /** Extends all locks now. A lock that Redis has lost is acquired again. */
  extendAll(): Promise<void>
  close(): void
}

export interface OwnedLock<T> {
  readonly key: string
  readonly run: string
  /** The id of the earlier run whose result the caller did not accept. */
  readonly refused: string
  readonly previous: T | undefined
  readonly stalledOwnerMs: number
  /** The time at which the lock was requested, from `performance.now()`. Infinity if the run has no lock. */
  readonly requestedAt: number
}

export interface RunTiming {
  readonly leaseMs: number
  /** The time limit of a run. */
  readonly workMs: number
  /** The lease must last at least this much longer when a token is used, which is the time limit of a provider call. */
  readonly callMs: number
}

interface Owned {
  readonly run: string
  readonly refused: string
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
      // The run may end before the command is sent. An extension must not acquire the lock again after the run has
      // ended.
      const isOurs = await link.send(async commands => ownedLocks.get(key) !== lock || extendLock(commands))
      lock.ownedUntil = isOurs ? Math.max(lock.ownedUntil, requestedAt + leaseMs) : 0
    } catch {
      // The remaining lease still protects the run, and the next extension tries again.
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
