/**
 * The refresh step of the contract (section 5.1, step 3.2), made safe for single-use refresh tokens. A refresh token is
 * used by one run at a time, under a lock. The result is kept for requests that still carry the old cookie, until the
 * browser has sent the new one.
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
 * - `due`: the tokens have expired, or expire so soon that they should be refreshed early
 * - `loggedOut`: a logout has ended the session
 */
export type SessionState = 'active' | 'due' | 'loggedOut'

/** The session after a refresh. `loggedOut`: a logout ended it meanwhile. */
export type RefreshedSession = FollowedSession | { readonly kind: 'loggedOut' }

export interface Delivery {
  /** False if the response cannot set cookies, so that the browser's old cookie must go on leading to the newest session. */
  readonly reachesBrowser: boolean
}

export interface Refreshes {
  /** The state of a session that a request carries. This is the only cost of a request whose session is active. */
  stateOf(record: SessionRecord, delivery?: Delivery): Promise<SessionState>
  /**
   * Refreshes a session that is due. If the old tokens are still valid and cannot be refreshed now, the record in the result
   * is the same object.
   */
  refresh(record: SessionRecord, log: Log, delivery?: Delivery): Promise<RefreshedSession>
  /** The newest session that finished refreshes have made of `record`. */
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
      // Confirming shortens the life of a result, which the browser's other requests may still need.
      if (reachesBrowser && record.supersedes !== undefined) coordination.confirm(record.supersedes, keepMs)
      if (await isLoggedOut(coordination, record.id)) return 'loggedOut'
      return schedule.isDue(record) ? 'due' : 'active'
    },
    async refresh(record, log, { reachesBrowser } = TO_BROWSER) {
      const session = await refreshOrReport(record, { log, reachesBrowser })
      // A logout that came meanwhile wins over every answer of the identity provider.
      if (!(await isLoggedOut(coordination, record.id))) return session
      const { fields } = 'record' in session ? session.record : record
      if (fields.refresh_token !== record.fields.refresh_token) abandon(idp, fields.refresh_token)
      return { kind: 'loggedOut' }
    },
    newest: follower.newest
  }
}
