/**
 * Refreshes the tokens of a session (service contract, section 5.1, step 3.2). Providers may accept a refresh token
 * only once, so a request must own a lock to use it. The coordination store keeps the result of each refresh, because
 * other requests may still carry the old cookie. This result is called the kept result. It expires soon after the
 * browser has sent the new cookie.
 */
import { type Coordination, CoordinationError } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import { abandon } from '../modes/grants.js'
import type { Mode } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import type { Log } from './log.js'
import { isLoggedOut } from './logout-marks.js'
import { createRefreshFollower, type FollowedSession } from './refresh-follow.js'
import { createRefreshReport } from './refresh-report.js'
import type { RefreshRequest } from './refresh-run.js'
import { createRefreshSchedule } from './refresh-schedule.js'

export interface RefreshParts {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'revokeRefreshToken'>
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly marginSeconds: number
  readonly spreadSeconds: number
  readonly keepSeconds: number
  readonly maxAgeSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded'>
}

/**
 * - `active`: the tokens are valid, and no refresh is necessary
 * - `due`: the tokens have expired, or will expire so soon that they should be refreshed early
 * - `loggedOut`: the session was logged out
 */
export type SessionState = 'active' | 'due' | 'loggedOut'

/** The session after a refresh. `loggedOut` means that the session was logged out during the refresh. */
export type RefreshedSession = FollowedSession | { readonly kind: 'loggedOut' }

export interface Delivery {
  /**
   * False if the response cannot set cookies, as in forward-auth. The browser then keeps its old cookie, so the server
   * must be able to find the newest session from the old cookie.
   */
  readonly reachesBrowser: boolean
}

export interface Refreshes {
  /**
   * Returns the state of the session in a request. A request with an active session needs no other call to the store.
   */
  stateOf(record: SessionRecord, delivery?: Delivery): Promise<SessionState>
  /**
   * Refreshes a session that is due. If this is not possible now but the old tokens are still valid, the result
   * contains the same `record` object.
   */
  refresh(record: SessionRecord, log: Log, delivery?: Delivery): Promise<RefreshedSession>
  /**
   * Returns the newest session that earlier refreshes of `record` have produced, or `record` itself. Never refreshes.
   */
  newest(record: SessionRecord): Promise<SessionRecord>
}

const TO_BROWSER: Delivery = { reachesBrowser: true }

export function createRefreshes(parts: RefreshParts): Refreshes {
  const { mode, idp, coordination, now, keepSeconds, maxAgeSeconds, metrics = noMetrics } = parts
  const keepMs = keepSeconds * 1000
  const maxAgeMs = maxAgeSeconds * 1000
  const schedule = createRefreshSchedule(parts)
  const report = createRefreshReport({ mode: mode.name, metrics, now })
  const follower = createRefreshFollower({ mode, idp, coordination, now, keepMs, maxAgeMs, schedule, report })

  async function refreshOrReport(record: SessionRecord, request: RefreshRequest): Promise<FollowedSession> {
    try {
      return await follower.refresh(record, request)
    } catch (error) {
      if (!(error instanceof CoordinationError)) throw error
      report.unavailable(request.log, record.id, error)
      if (!schedule.hasExpired(record.fields)) return { kind: 'live', record }
      return { kind: 'unavailable', record, retryAfterSeconds: error.retryAfterSeconds }
    }
  }

  return {
    async stateOf(record, { reachesBrowser } = TO_BROWSER) {
      // The cookie shows that the browser has received this session, so the kept result may expire soon. A forward-auth
      // request does not shorten its lifetime, because other requests of the browser may still need the result.
      if (reachesBrowser && record.supersedes !== undefined) coordination.confirm(record.supersedes, keepMs)
      if (await isLoggedOut(coordination, record.id)) return 'loggedOut'
      return schedule.isDue(record) ? 'due' : 'active'
    },
    async refresh(record, log, { reachesBrowser } = TO_BROWSER) {
      const session = await refreshOrReport(record, { log, reachesBrowser })
      // If the session was logged out during the refresh, the logout takes precedence over the new tokens.
      if (!(await isLoggedOut(coordination, record.id))) return session
      const { fields } = 'record' in session ? session.record : record
      if (fields.refresh_token !== record.fields.refresh_token) abandon(idp, fields.refresh_token)
      return { kind: 'loggedOut' }
    },
    newest: follower.newest
  }
}
