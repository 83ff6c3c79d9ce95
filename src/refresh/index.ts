/**
 * Finds the current session of a request, and refreshes it if necessary. Requests of one session share one refresh. Only
 * this file knows when a request stops waiting for a refresh.
 */
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import type { SessionRecord } from '../session/record.js'
import { RedisUnavailableError, StoredDataError } from '../store/redis-errors.js'
import { startStopwatch } from '../support/clock.js'
import { withinOrUndefined } from '../support/within.js'
import { createRefresh, type Refreshed, type RefreshParts, type RefreshRun, resultOfEnd } from './refresh.js'
import { createRefreshReport, type Log, type RefreshOutcome, type RefreshResult } from './report.js'
import { createRefreshSchedule } from './schedule.js'

export interface RefreshesParts extends Omit<RefreshParts, 'schedule'> {
  readonly marginSeconds: number
  readonly spreadSeconds: number
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded' | 'refreshWaited' | 'staleCookie'>
}

/** Returns the logger of a request. Most requests log nothing, so their logger is never created. */
export type RequestLog = () => Log

export interface Refreshes {
  /**
   * Returns the current session of a request with the cookie of `record`, and refreshes it if its tokens have expired. The
   * record of the result is `record` itself if the browser needs no new cookie. Never rejects because of the store or the
   * identity provider.
   */
  current(record: SessionRecord, log: RequestLog): Promise<Refreshed>
  /** Returns the newest session with the id of `record` that is known, or `record` itself. Never refreshes. */
  newest(record: SessionRecord): Promise<SessionRecord>
  /** Resolves when no refresh is in progress. */
  ended(): Promise<void>
}

// A stored session that cannot be read needs the operator, so the next attempt may come later.
const UNREADABLE_RETRY_SECONDS = 5

/** @example const session = await refreshes.current(record, () => log) */
export function createRefreshes(parts: RefreshesParts): Refreshes {
  const { mode, store, clock, timeoutSeconds, metrics = noMetrics } = parts
  const schedule = createRefreshSchedule({ ...parts, now: clock.now })
  const report = createRefreshReport({ mode: mode.name, metrics, now: clock.now })
  const refresh = createRefresh({ ...parts, schedule })
  const running = new Map<string, Promise<RefreshRun>>()

  /** Starts a refresh, and reports it when it ends, even if no request waits for it any more. */
  function start(record: SessionRecord, log: Log): Promise<RefreshRun> {
    const elapsedMs = startStopwatch(clock)
    const run = refresh(record, log)
      .catch((error: unknown) => unreadable(record, error, log))
      .finally(() => running.delete(record.id))
    running.set(record.id, run)
    run.then(
      ended => {
        const isLookUp = ended.result.kind === 'out' || ended.result.kind === 'stale'
        if (isLookUp && ended.calls === 0) return
        report.ended(log, record.id, resultOf(ended, ended.calls === 0 ? 'kept' : 'refreshed', elapsedMs()))
      },
      () => {}
    )
    return run
  }

  /** The stored session has the wrong type or was encrypted with another secret. The old tokens stay in use. */
  function unreadable(record: SessionRecord, error: unknown, log: Log): RefreshRun {
    if (!(error instanceof StoredDataError)) throw error
    const message = 'a stored session cannot be read: it was encrypted with another secret, or it has the wrong type'
    log.error({ event: 'stored_data_unreadable' }, message)
    const reason = 'unreadable'
    return {
      result: { kind: 'unavailable', record, reason, retryAfterSeconds: UNREADABLE_RETRY_SECONDS },
      calls: 0,
      reason
    }
  }

  /** Waits for the refresh of a session, but no longer than a request may take. */
  async function refreshInTime(record: SessionRecord, log: Log): Promise<Refreshed> {
    const elapsedMs = startStopwatch(clock)
    const joined = running.get(record.id)
    const run = joined ?? start(record, log)
    const ended = await withinOrUndefined(timeoutSeconds * 1000, run, clock)
    if (!ended) {
      report.ended(log, record.id, { outcome: 'failed', reason: 'pending', durationMs: elapsedMs(), calls: 0 })
      if (!schedule.hasExpired(record.fields)) return { kind: 'live', record }
      return { kind: 'unavailable', record, reason: 'pending', retryAfterSeconds: 1 }
    }
    const { result } = ended
    if (!joined) return result
    // The refresh may have started for an older cookie and ended without tokens.
    if ('record' in result && result.record.rev < record.rev) return refreshInTime(record, log)
    report.ended(log, record.id, { ...resultOf(ended, 'coalesced', elapsedMs()), calls: 0 })
    return result
  }

  return {
    async current(record, requestLog) {
      const elapsedMs = startStopwatch(clock)
      store.browserSent(record)
      let session = store.newerHere(record) ?? record
      if (!schedule.isDue(session)) {
        try {
          const looked = await store.look(record)
          if (looked.kind === 'stale') report.stale(requestLog(), record)
          if (looked.kind === 'newer') session = looked.record
          if (looked.kind !== 'newer' && looked.kind !== 'current') return resultOfEnd(looked)
        } catch (error) {
          return unreadable(record, error, requestLog()).result
        }
        if (!schedule.isDue(session)) {
          const { expires_at: expiresAt } = session.fields
          const kept = { outcome: 'kept', durationMs: elapsedMs(), calls: 0, expiresAt } as const
          if (schedule.isDue(record)) report.ended(requestLog(), record.id, kept)
          return { kind: 'live', record: session }
        }
      }
      const log = requestLog()
      const result = await refreshInTime(session, log)
      if (result.kind === 'stale') report.stale(log, record)
      return result
    },
    async newest(record) {
      try {
        const looked = await store.look(record)
        return looked.kind === 'newer' ? looked.record : record
      } catch (error) {
        if (error instanceof StoredDataError || error instanceof RedisUnavailableError) return record
        throw error
      }
    },
    async ended() {
      while (running.size > 0) await Promise.allSettled(running.values())
    }
  }
}

/** @param success the outcome if the session has valid tokens now */
function resultOf({ result, calls, reason }: RefreshRun, success: RefreshOutcome, durationMs: number): RefreshResult {
  if (result.kind === 'ended' || result.kind === 'denied' || result.kind === 'out')
    return { outcome: 'rejected', durationMs, calls }
  const isPartial = 'record' in result && result.record.internalExpiresAt !== undefined
  if (reason !== undefined || result.kind !== 'live') {
    return { outcome: isPartial ? 'partial' : 'failed', reason: reason ?? 'pending', durationMs, calls }
  }
  return { outcome: success, durationMs, calls, expiresAt: result.record.fields.expires_at }
}
