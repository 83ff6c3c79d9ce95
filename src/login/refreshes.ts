/**
 * Finds the current session of a request, and refreshes it if necessary. Requests of one session share one refresh (single
 * flight). A request stops waiting after a time limit, but the refresh continues.
 */
import { type Clock, startStopwatch, withinOrUndefined } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { type CookieSession, hasTokens } from '../cookie/record.js'
import { type Current, type Problem, StoreUnavailableError } from '../sessions/index.js'
import { createRefresh, problemOf, type RefreshDependencies, type Refreshed } from './refresh.js'
import { createRefreshReport, type Log, type RefreshResult, type Success } from './refresh-report.js'
import { createRefreshSchedule } from './schedule.js'

interface RefreshesDependencies extends Omit<RefreshDependencies, 'schedule'> {
  readonly clock: Clock
  readonly beforeExpirySeconds: number
  readonly jitterSeconds: number
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  readonly metrics?: Metrics
}

/** A refresh in progress, and the number of requests that wait for it. */
interface Running {
  requests: number
  readonly ended: Promise<Refreshed>
}

/** Returns the logger of a request. This is a function, because most requests log nothing and need no logger. */
type LazyLog = () => Log

export interface Refreshes {
  /**
   * Returns the current session of a request, and refreshes it if its tokens have expired. If it is `live`, its tokens are valid.
   * If the revision of its record differs from that of `session`, the browser needs a new cookie. Does not reject if the store or
   * the identity provider fails.
   */
  current(session: CookieSession, log: LazyLog): Promise<Current>
  /** Resolves when no refresh is in progress. */
  ended(): Promise<void>
}

/** @example const current = await createRefreshes(dependencies).current(session, () => log) */
export function createRefreshes(dependencies: RefreshesDependencies): Refreshes {
  const { mode, sessions, clock, timeoutSeconds, metrics = noMetrics } = dependencies
  const schedule = createRefreshSchedule({ ...dependencies, now: sessions.now })
  const report = createRefreshReport({ mode: mode.name, metrics, now: sessions.now })
  const { refresh, withoutRefresh } = createRefresh({ ...dependencies, schedule })
  const running = new Map<string, Running>()

  /** Starts the refresh of a session, which reports its outcome even if no request is waiting any longer. */
  function startRefresh(session: CookieSession, log: Log): Running {
    const started: Running = { requests: 0, ended: run() }
    running.set(session.id, started)
    return started

    async function run(): Promise<Refreshed> {
      const elapsedMs = startStopwatch(clock)
      try {
        const refreshed = await refresh(session, log)
        if (refreshed.current.kind !== 'over' || refreshed.calls > 0) {
          const { requests } = started
          const success = refreshed.calls === 0 ? 'already_refreshed' : 'succeeded'
          const result = resultOf(refreshed, success, elapsedMs())
          if (result.outcome !== 'already_refreshed') metrics.count('refreshes_total', { outcome: result.outcome })
          report.ended(log, session.id, { ...result, requests })
        }
        return refreshed
      } finally {
        running.delete(session.id)
      }
    }
  }

  /** Waits for the refresh of a session, but at most `timeoutSeconds`. */
  async function refreshInTime(session: CookieSession, log: Log): Promise<Current> {
    const { id } = session
    const elapsedMs = startStopwatch(clock)
    const joined = running.get(id)
    const refreshing = joined ?? startRefresh(session, log)
    refreshing.requests++
    const refreshed = await withinOrUndefined(timeoutSeconds * 1000, refreshing.ended, clock)
    if (!refreshed) {
      refreshing.requests--
      report.ended(log, id, failed('pending', elapsedMs()))
      return withoutRefresh(id, 'pending', 1)
    }
    if (joined) report.ended(log, id, { ...resultOf(refreshed, 'coalesced', elapsedMs()), calls: 0 })
    const known = sessions.known(id)
    return known.kind === 'over' ? known : refreshed.current
  }

  return {
    async current(session, requestLog) {
      const elapsedMs = startStopwatch(clock)
      // Read the store first, even if the session is due for a refresh. Otherwise, if a pause or the recovery time prevented the
      // refresh, the request would not notice that the session is over.
      const found = await sessions.current(session).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailableError)) throw error
        const why = problemOf(error, requestLog())
        const current = withoutRefresh(session.id, why, error.retryAfterSeconds)
        if (current.kind === 'unavailable') {
          metrics.count('refreshes_total', { outcome: 'failed' })
          report.ended(requestLog(), session.id, { ...failed(why, elapsedMs()), requests: 1 })
        }
        return { current }
      })
      if ('current' in found) return found.current
      if (found.kind === 'over') return found
      if (found.kind === 'unavailable' || schedule.isDue(found.record)) return refreshInTime(session, requestLog())
      const { rev, fields } = found.record
      if (hasTokens(session) && rev > session.rev && schedule.isDue(session)) {
        const result = { outcome: 'already_refreshed', durationMs: elapsedMs(), calls: 0 } as const
        report.ended(requestLog(), session.id, { ...result, expiresAt: fields.expires_at })
      }
      return found
    },
    async ended() {
      while (running.size > 0) await Promise.allSettled([...running.values()].map(({ ended }) => ended))
    }
  }
}

function failed(problem: Problem, durationMs: number): RefreshResult {
  return { outcome: 'failed', problem, durationMs, calls: 0 }
}

/** @param success the outcome to report if the refresh has not failed */
function resultOf({ current, calls, problem, error }: Refreshed, success: Success, durationMs: number): RefreshResult {
  if (current.kind === 'over') return { outcome: 'rejected', end: current.end, error, durationMs, calls }
  if (problem !== undefined || current.kind === 'unavailable') {
    const isPartial = current.record?.kind === 'half-refreshed'
    return { outcome: isPartial ? 'partial' : 'failed', problem: problem ?? 'pending', error, durationMs, calls }
  }
  return { outcome: success, durationMs, calls, expiresAt: current.record.fields.expires_at }
}
