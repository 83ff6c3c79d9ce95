/** One run of a refresh, which sends its token requests while it owns the lock of the refresh token. */
import { CoordinationError, type Run, type Settled } from '../coordination/coordination.js'
import type { Mode } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import { type KeptRefresh, markUndelivered } from './kept-refresh.js'
import type { Log } from './log.js'
import type { RefreshChain } from './refresh-chain.js'
import type { RefreshReport } from './refresh-report.js'
import { createRefreshResults, type RefreshResultParts } from './refresh-result.js'

export interface RefreshRunParts extends RefreshResultParts {
  readonly mode: Mode
  readonly report: RefreshReport
}

/** A request that needs a refreshed session. */
export interface RefreshRequest {
  readonly log: Log
  /** False if the response cannot set cookies. */
  readonly reachesBrowser: boolean
}

export interface RefreshRunOptions extends RefreshRequest {
  readonly record: SessionRecord
  /** The kept results of earlier refreshes that led to `record`. */
  readonly chain: RefreshChain
  /**
   * Until this time, in milliseconds since the epoch, an earlier owner of the lock may still store its result, although
   * it has stopped extending the lock.
   */
  readonly stalledUntil: number
}

/**
 * Refreshes a session and returns the result to keep. The caller must own the lock of the refresh token.
 * @throws CoordinationError if another run has used the refresh token, if the lock was lost, if the provider asked for
 *   a pause, or if the store cannot be used now
 */
export type RefreshUnderLock = (options: RefreshRunOptions, run: Run<KeptRefresh>) => Promise<Settled<KeptRefresh>>

export function createRefreshRun(parts: RefreshRunParts): RefreshUnderLock {
  const { mode, coordination, now, report } = parts
  const { checkpointOf, resultOf } = createRefreshResults(parts)

  return async function refreshUnderLock({ record, chain, stalledUntil, log, reachesBrowser }, run) {
    await chain.ensureCurrent()
    // This process may have been suspended after it acquired the lock. In that time another replica may have acquired
    // the lock and used the refresh token.
    await run.ensureOwned()
    const startedAt = performance.now()
    const isSecondStep = record.internalExpiresAt !== undefined
    const pausedMs = coordination.pausedMs({ isUrgent: isSecondStep })
    if (pausedMs > 0) throw new CoordinationError('paused', Math.ceil(pausedMs / 1000))
    const toKeep = reachesBrowser ? (settled: Settled<KeptRefresh>) => settled : markUndelivered
    const refreshed = await mode.refresh(record, {
      timeoutMs: run.remainingMs,
      async betweenSteps(reached) {
        await run.checkpoint(toKeep(checkpointOf(record, reached)))
        await run.ensureOwned()
      }
    })
    const finalAt = Math.max(now() + run.stalledOwnerMs, stalledUntil)
    const settled = toKeep(resultOf({ before: record, refreshed, finalAt, previous: run.previous, log }))
    const durationMs = performance.now() - startedAt
    report.ended(log, record.id, { how: 'ran', result: settled.value, durationMs, calls: refreshed.calls })
    return settled
  }
}
