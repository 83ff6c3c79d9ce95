/**
 * Finds the current session of a request, and refreshes it if necessary. Requests of one session share one refresh (single
 * flight). A request stops waiting after a time limit, but the refresh continues.
 */
import { type Clock, startStopwatch, withinOrUndefined } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { type CookieSession, hasTokens } from '../cookie/session-record.js'
import { type Current, StoreUnavailableError } from '../sessions/index.js'
import { createRefresh, problemOf, type RefreshDependencies } from './refresh.js'
import { createRefreshReport, type Log, type Refreshed } from './refresh-report.js'
import { createRefreshSchedule, type RefreshTimes } from './schedule.js'

interface RefreshesDependencies extends Omit<RefreshDependencies, 'schedule'>, RefreshTimes {
  readonly clock: Clock
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  readonly metrics?: Metrics
}

/** A refresh in progress, and the number of requests that wait for it. */
interface Running {
  requests: number
  readonly ended: Promise<Refreshed>
}

export type Refreshes = ReturnType<typeof createRefreshes>

/** @example const current = await createRefreshes(dependencies).current(session, () => log) */
export function createRefreshes(dependencies: RefreshesDependencies) {
  const { mode, sessions, clock, timeoutSeconds, metrics = noMetrics } = dependencies
  const schedule = createRefreshSchedule(dependencies, sessions.now)
  const reportRefresh = createRefreshReport(mode.name, metrics, sessions.now)
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
          const success = refreshed.calls === 0 ? 'already_refreshed' : 'succeeded'
          reportRefresh(log, session.id, refreshed, { durationMs: elapsedMs(), success, requests: started.requests })
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
    const ended = await withinOrUndefined(timeoutSeconds * 1000, refreshing.ended, clock)
    if (!ended) refreshing.requests--
    const refreshed = ended ?? withoutRefresh(id, 'pending', 1)
    if (joined || !ended) {
      reportRefresh(log, id, { ...refreshed, calls: 0 }, { durationMs: elapsedMs(), success: 'coalesced' })
    }
    if (!ended) return refreshed.current
    const known = sessions.known(id)
    return known.kind === 'over' ? known : refreshed.current
  }

  return {
    /**
     * Returns the current session of a request, and refreshes it if its tokens have expired. If it is `live`, its tokens are valid.
     * If the revision of its record differs from that of `session`, the browser needs a new cookie. Does not reject if the store or
     * the identity provider fails.
     * @param requestLog returns the logger of the request. Most requests log nothing and need none
     */
    async current(session: CookieSession, requestLog: () => Log): Promise<Current> {
      const elapsedMs = startStopwatch(clock)
      // Read the store first, even if the session is due for a refresh. Otherwise, if a pause or the recovery time prevented the
      // refresh, the request would not notice that the session is over.
      let found: Current
      try {
        found = await sessions.current(session)
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error
        const refreshed = withoutRefresh(session.id, problemOf(error, requestLog()), error.retryAfterSeconds)
        if (refreshed.current.kind === 'unavailable') {
          const waited = { durationMs: elapsedMs(), success: 'succeeded', requests: 1 } as const
          reportRefresh(requestLog(), session.id, refreshed, waited)
        }
        return refreshed.current
      }
      if (found.kind === 'over') return found
      if (found.kind === 'unavailable' || schedule.isDue(found.record)) return refreshInTime(session, requestLog())
      if (hasTokens(session) && found.record.rev > session.rev && schedule.isDue(session)) {
        const waited = { durationMs: elapsedMs(), success: 'already_refreshed' } as const
        reportRefresh(requestLog(), session.id, { current: found, calls: 0 }, waited)
      }
      return found
    },
    /** Resolves when no refresh is in progress. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.allSettled([...running.values()].map(({ ended }) => ended))
    }
  }
}
