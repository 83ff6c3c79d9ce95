import { CoordinationError, type Run } from './coordination.js'
import type { RedisLink } from './redis-link.js'
import type { RedisScripts } from './redis-scripts.js'
import type { ResultSeal } from './result-seal.js'

/** The locks that this process owns. Each is extended for as long as its run lasts. */
export interface RedisRuns {
  start<T>(lock: OwnedLock<T>): Run<T>
  end(key: string): void
  /** Extends all locks now, and takes those again that Redis has lost. */
  extendAll(): Promise<void>
  close(): void
}

export interface OwnedLock<T> {
  readonly key: string
  readonly run: string
  /** The run whose result was not accepted. */
  readonly refused: string
  readonly previous: T | undefined
  readonly stalledOwnerMs: number
  /** When the lock was asked for, on the clock of `performance.now()`. Infinity: there is no lock to lose. */
  readonly askedAt: number
}

export interface RunTiming {
  readonly leaseMs: number
  /** The time limit of a run. */
  readonly workMs: number
  /** A lease must have this much left when a token is used: as long as the identity provider usually takes at most. */
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
  const owned = new Map<string, Owned>()
  const extending = setInterval(extendAll, leaseMs / 4)
  extending.unref()

  async function extend(key: string, lock: Owned): Promise<void> {
    const askedAt = performance.now()
    const extendLock = scripts.extend(key, lock.run, lock.refused)
    try {
      // The run may have ended by the time the command is sent. A late extension must not take its lock again.
      const isOurs = await link.send(async commands => owned.get(key) !== lock || extendLock(commands))
      lock.ownedUntil = isOurs ? Math.max(lock.ownedUntil, askedAt + leaseMs) : 0
    } catch {
      // The lease that is left still protects the run.
    }
  }

  async function extendAll() {
    await Promise.all([...owned].map(([key, lock]) => extend(key, lock)))
  }

  return {
    start({ key, run, refused, previous, stalledOwnerMs, askedAt }) {
      const deadline = performance.now() + workMs
      const lock: Owned = { run, refused, ownedUntil: askedAt + leaseMs }
      if (Number.isFinite(askedAt)) owned.set(key, lock)
      const isSafe = () => lock.ownedUntil - performance.now() >= callMs
      return {
        stalledOwnerMs,
        previous,
        remainingMs: () => Math.max(1, Math.round(deadline - performance.now())),
        async checkpoint({ value, keepMs }) {
          const text = seal.seal(key, { run, hasTokens: true, value, isCheckpoint: true })
          await link.send(scripts.checkpoint(key, text, keepMs)).catch(() => {})
        },
        async ensureOwned() {
          if (isSafe()) return
          await extend(key, lock)
          if (!isSafe()) throw new CoordinationError('store')
        }
      }
    },
    end: key => void owned.delete(key),
    extendAll,
    close: () => clearInterval(extending)
  }
}
