/**
 * Finds the current session of a request, and refreshes it if necessary. Requests of one session share one refresh (single
 * flight). A request stops waiting after a time limit, but the refresh continues.
 *
 * The *revision* of a session is a number that grows with each stored token response and each stored change. The *record* is the
 * session at its newest revision. The *lease* is the right of one process to send the refresh token.
 */

import { startStopwatch, withinOrUndefined } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { type CookieSession, hasTokens, type SessionRecord, withCustomFields } from '../cookie/record.js'
import { requireStorable } from '../cookie/session-cookie.js'
import { ignoreUnavailable, StoreUnavailableError } from './cells.js'
import { acquireLease, patience } from './lease.js'
import { createRefresh, problemOf, type RefreshDependencies, type Refreshed, type RefreshRun } from './refresh.js'
import { createRefreshReport, type Log, type RefreshOutcome, type RefreshResult } from './report.js'
import { createRefreshSchedule } from './schedule.js'

interface RefreshesDependencies extends Omit<RefreshDependencies, 'schedule'> {
  readonly beforeExpirySeconds: number
  readonly jitterSeconds: number
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded' | 'refreshWaited'>
}

/** A refresh in progress, and the number of requests that wait for it. */
interface Running {
  requests: number
  readonly ended: Promise<RefreshRun>
}

/** Returns the logger of a request. This is a function, because most requests log nothing and need no logger. */
type LazyLog = () => Log

export type Refreshes = ReturnType<typeof createRefreshes>

/** @example const refreshed = await createRefreshes(dependencies).current(session, () => log) */
export function createRefreshes(dependencies: RefreshesDependencies) {
  const { mode, store, clock, timeoutSeconds, metrics = noMetrics } = dependencies
  const schedule = createRefreshSchedule({ ...dependencies, now: store.now })
  const report = createRefreshReport({ mode: mode.name, metrics, now: store.now })
  const { refresh, usable } = createRefresh({ ...dependencies, schedule })
  const running = new Map<string, Running>()

  /** Starts the refresh of a session, which reports its outcome even if no request is waiting any longer. */
  function startRefresh(session: CookieSession, log: Log): Running {
    const started: Running = { requests: 0, ended: run() }
    running.set(session.id, started)
    return started

    async function run(): Promise<RefreshRun> {
      const elapsedMs = startStopwatch(clock)
      try {
        const ended = await refresh(session, log)
        if (ended.result.kind !== 'over' || ended.calls > 0) {
          const { requests } = started
          const success = ended.calls === 0 ? 'kept' : 'refreshed'
          report.ended(log, session.id, { ...resultOf(ended, success, elapsedMs()), requests })
        }
        return ended
      } finally {
        running.delete(session.id)
      }
    }
  }

  /** Waits for the refresh of a session, but at most `timeoutSeconds`. */
  async function refreshInTime(session: CookieSession, log: Log): Promise<Refreshed> {
    const { id } = session
    const elapsedMs = startStopwatch(clock)
    const joined = running.get(id)
    const refreshing = joined ?? startRefresh(session, log)
    refreshing.requests++
    const ended = await withinOrUndefined(timeoutSeconds * 1000, refreshing.ended, clock)
    if (!ended) {
      refreshing.requests--
      const pending = { outcome: 'failed', reason: 'pending', durationMs: elapsedMs(), calls: 0 } as const
      report.ended(log, id, { ...pending, ...(!joined && { requests: 1 }) })
      return usable(id, 'pending', 1)
    }
    if (joined) report.ended(log, id, { ...resultOf(ended, 'coalesced', elapsedMs()), calls: 0 })
    return ended.result
  }

  return {
    /**
     * Returns the current session of a request, and refreshes it if its tokens have expired. If the revision of the result
     * differs from that of `session`, the browser needs a new cookie. Does not reject if the store or the identity provider
     * fails.
     */
    async current(session: CookieSession, requestLog: LazyLog): Promise<Refreshed> {
      const { id } = session
      const elapsedMs = startStopwatch(clock)
      store.note(session)
      // Read the store first, even if the session is due for a refresh. Otherwise, if a pause or the recovery time prevented the
      // refresh, the request would not notice that the session is over.
      try {
        const found = await store.find(session)
        if (found.kind === 'over') return { kind: 'over', why: found.why }
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error
        const why = problemOf(error, requestLog())
        const record = store.newest(id)
        // A cell that cannot be decrypted may contain a logout, so do not use the tokens.
        const mayUse = why !== 'unreadable' && record && !schedule.hasExpired(record.fields)
        if (mayUse) return { kind: 'live', record: withHandlerFields(session, record) }
        const failed = { outcome: 'failed', reason: why, durationMs: elapsedMs(), calls: 0, requests: 1 } as const
        report.ended(requestLog(), id, failed)
        return { kind: 'unavailable', why, retryAfterSeconds: error.retryAfterSeconds, record }
      }
      const record = store.newest(id)
      if (record && !schedule.isDue(record)) {
        if (hasTokens(session) && record.rev > session.rev && schedule.isDue(session)) {
          const { expires_at: expiresAt } = record.fields
          report.ended(requestLog(), id, { outcome: 'kept', durationMs: elapsedMs(), calls: 0, expiresAt })
        }
        return { kind: 'live', record: withHandlerFields(session, record) }
      }
      const refreshed = await refreshInTime(session, requestLog())
      if (refreshed.kind === 'over') return refreshed
      const ended = store.endHere(id)
      return ended ? { kind: 'over', why: ended.why } : refreshed
    },
    /** Returns the newest known record of the session to which `record` belongs. Never refreshes. */
    async newest(record: SessionRecord): Promise<SessionRecord> {
      store.note(record)
      await store.find(record).catch(ignoreUnavailable)
      const newest = store.newest(record.id)
      return newest ? (withHandlerFields(record, newest) as SessionRecord) : record
    },
    /**
     * Stores the fields that a request handler has changed in a session that is kept in Redis. Returns the new record, or
     * undefined if the session is over.
     * @param stored the session after the changes of the handler; its tokens are ignored
     * @throws StoreUnavailableError if the change cannot be stored now; SessionTooLargeError
     */
    async change(record: SessionRecord, stored: object): Promise<SessionRecord | undefined> {
      requireStorable({ ...record, fields: withCustomFields(record.fields, stored) })
      for (const mayWait = patience(clock); mayWait(); ) {
        const acquired = await acquireLease(dependencies, { session: record, isChange: true, mayWait })
        if (acquired.kind === 'over') return undefined
        if (acquired.kind !== 'granted') continue
        const session = acquired.record as SessionRecord
        const next = { ...session, rev: session.rev + 1, fields: withCustomFields(session.fields, stored) }
        const committed = await acquired.lease.commit({ kind: 'change', record: next })
        if (!committed) throw new StoreUnavailableError('redis')
        if (committed.kind === 'stored') return next
        if (committed.kind === 'over') return undefined
      }
      throw new StoreUnavailableError('conflict')
    },
    /** Resolves when no refresh is in progress. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.allSettled([...running.values()].map(({ ended }) => ended))
    }
  }
}

/**
 * Returns the newest record. If the cookie has the same revision, returns the session of the cookie instead, because a request
 * handler may have added fields to it.
 */
function withHandlerFields(session: CookieSession, newest: SessionRecord): SessionRecord {
  return hasTokens(session) && session.rev === newest.rev ? session : newest
}

/** @param success the outcome to report if the refresh has not failed */
function resultOf({ result, calls, problem }: RefreshRun, success: RefreshOutcome, durationMs: number): RefreshResult {
  if (result.kind === 'over') return { outcome: 'rejected', durationMs, calls }
  if (problem !== undefined || result.kind !== 'live') {
    const isPartial = result.record?.kind === 'half-refreshed'
    return { outcome: isPartial ? 'partial' : 'failed', reason: problem ?? 'pending', durationMs, calls }
  }
  return { outcome: success, durationMs, calls, expiresAt: result.record.fields.expires_at }
}
