/**
 * Logs a browser out of this server. Depending on the settings `logout.…`, also revokes the refresh token or signs the browser out
 * at the identity provider. With `platform.backchannelLogout`, this file can also log out all sessions of a user.
 */

import { within } from '../base/clock.js'
import type { Metrics } from '../base/metrics.js'
import type { Background } from '../base/shutdown.js'
import type { Config } from '../config/settings.js'
import { type CookieSession, hasTokens, type SessionRecord, sessionHash } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { type Sessions, type SessionsOf, StoreUnavailableError, type UserSessions } from '../sessions/index.js'
import type { Profiles } from './profiles.js'
import type { Log } from './refresh-report.js'

interface LogOutDependencies {
  /** The settings `logout.…`. */
  readonly logout: Config['logout']
  readonly idp: Pick<IdentityProvider, 'endpoint' | 'revokeRefreshToken' | 'endSessionUrl'>
  readonly profiles: Pick<Profiles, 'forget'>
  readonly sessions: Pick<Sessions, 'current' | 'end'>
  /** Undefined unless `platform.backchannelLogout` is on. */
  readonly userSessions: Pick<UserSessions, 'logOutAll' | 'leave'> | undefined
  readonly background: Background
  readonly metrics: Metrics
}

/**
 * Logs the session out in the store. With `logout.revoke`, also revokes its refresh token in the background. The logout works
 * even if the identity provider is down. Returns the URL that signs the browser out at the identity provider, or undefined if the
 * browser should go to the start page.
 * @param session the session of the browser, if it has one
 */
export type LogOut = (session: CookieSession | undefined, log: Log) => Promise<string | undefined>

/**
 * Ends sessions on all replicas, including sessions that are being refreshed, and returns the number of sessions. With
 * `logout.revoke`, also revokes the refresh tokens of these sessions in the background, if the store or this process
 * has them.
 * @param issuedAt the `iat` of a logout token; see `UserSessions.logOutAll`
 * @throws StoreUnavailableError if the sessions cannot be found now, or if a logout is not stored
 */
export type EndSessions = (of: SessionsOf, issuedAt: number | undefined, log: Log) => Promise<number>

// A user who logs out should not wait longer for a provider that does not respond.
const DISCOVERY_TIMEOUT_MS = 2000
/**
 * The number of one user's refresh tokens that are revoked in parallel. The queue of the revocation endpoint has more slots, so
 * other logouts do not wait.
 */
export const REVOKED_IN_PARALLEL = 16

export function createLogOuts(dependencies: LogOutDependencies) {
  const { logout, idp, profiles, sessions, userSessions, background, metrics } = dependencies

  // Runs in the background, so the redirect does not wait for it. A refresh that is still in progress finds the logout in the
  // store, and then revokes the new refresh token itself.
  async function revoke(id: string, record: SessionRecord | undefined, log: Log): Promise<void> {
    const session = sessionHash(id)
    const count = (outcome: 'succeeded' | 'unavailable' | 'failed') => metrics.count('revocations_total', { outcome })
    try {
      const obstacle = await revokeUnlessImpossible(record)
      count(obstacle === undefined ? 'succeeded' : 'unavailable')
      if (obstacle === undefined) log.info({ event: 'refresh_token_revoked', session }, 'refresh token revoked')
      else log.info({ event: 'revocation_unavailable', session }, `refresh token not revoked: ${obstacle}`)
    } catch (error) {
      count('failed')
      log.warn({ event: 'revocation_failed', session, err: error }, 'refresh token not revoked')
    }
  }

  /** Returns why the refresh token cannot be revoked. Undefined if it was revoked. */
  async function revokeUnlessImpossible(record: SessionRecord | undefined): Promise<string | undefined> {
    if (!record) return 'Redis has lost the session or is unavailable'
    if ((await idp.endpoint('revocationEndpoint')) === undefined) return 'the provider has no revocation endpoint'
    await idp.revokeRefreshToken(record.fields.refresh_token)
    return undefined
  }

  async function revokeEach(records: readonly SessionRecord[], log: Log): Promise<void> {
    const remaining = [...records]
    const work = async () => {
      for (let record = remaining.pop(); record; record = remaining.pop()) await revoke(record.id, record, log)
    }
    await Promise.all(Array.from({ length: REVOKED_IN_PARALLEL }, work))
  }

  async function endSessionUrl(session: SessionRecord | undefined, log: Log): Promise<string | undefined> {
    try {
      const url = await within(DISCOVERY_TIMEOUT_MS, idp.endSessionUrl(session?.identity?.idToken))
      if (url !== undefined) return url
      log.info({ event: 'end_session_unavailable' }, 'logged out here only: the provider has no end-session endpoint')
    } catch (error) {
      log.warn({ event: 'end_session_failed', err: error }, 'logged out here only: the provider did not respond')
    }
    return undefined
  }

  async function logOut(session: CookieSession | undefined, log: Log, by: 'browser' | 'everywhere' = 'browser') {
    let newest: SessionRecord | undefined
    if (session) {
      profiles.forget(session.id)
      const { record } = await sessions.end(session)
      newest = record ?? (hasTokens(session) ? session : undefined)
      if (newest) userSessions?.leave(newest)
      metrics.count('logouts_total', { by })
      if (logout.revoke) void background.add(revoke(session.id, newest, log))
    }
    // Without a session there was nothing to end, and anybody can send such requests.
    if (session) log.info({ event: 'logout_succeeded', session: sessionHash(session.id) }, 'logout')
    return logout.idp ? endSessionUrl(newest, log) : undefined
  }

  async function endSessions(of: SessionsOf, issuedAt: number | undefined, log: Log): Promise<number> {
    if (!userSessions) throw new TypeError('the sessions of a user are listed only with platform.backchannelLogout')
    const { ids, records } = await userSessions.logOutAll(of, issuedAt)
    for (const id of ids) profiles.forget(id)
    if (logout.revoke) void background.add(revokeEach(records, log))
    return ids.length
  }

  return {
    logOut: (session: CookieSession | undefined, log: Log) => logOut(session, log),
    /**
     * Like `logOut`, but ends all sessions of the user. If the browser's session is already over, the other sessions of the user
     * are not ended.
     * @throws StoreUnavailableError if the sessions cannot be found now, or if a logout is not stored
     */
    async logOutEverywhere(session: CookieSession | undefined, log: Log): Promise<string | undefined> {
      // If the session of this cookie is over, the cookie may be a stolen copy that was kept after a logout. Such a cookie must
      // not end the other sessions of the user.
      const live = session && (await liveSession(sessions, session))
      if (live?.identity) {
        const { iss, sub } = live.identity
        const ended = await endSessions({ iss, sub }, undefined, log)
        log.info({ event: 'logout_everywhere_succeeded', sessions: ended }, 'all sessions of a user were logged out')
      }
      return logOut(live ?? session, log, 'everywhere')
    },
    endSessions
  }
}

/**
 * Returns the newest known record of the browser's session. Returns undefined if the session is over.
 * @throws StoreUnavailableError
 */
export async function liveSession(sessions: Pick<Sessions, 'current'>, session: CookieSession) {
  const current = await sessions.current(session)
  if (current.kind === 'over') return undefined
  // Redis has lost the session, but another process may still restore it. So the same request may succeed later.
  if (current.kind === 'unavailable') throw new StoreUnavailableError('redis')
  return current.record
}
