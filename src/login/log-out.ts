/**
 * Logs a browser out of this server. Depending on the setting `logout`, also revokes the refresh token or signs the
 * browser out at the identity provider. With an index of sessions, also logs out all sessions of a person.
 */
import type { Config } from '../config/settings.js'
import type { IdentityProvider } from '../provider/client.js'
import type { Log } from '../refresh/report.js'
import { type CookieSession, isKeptInRedis, type SessionRecord } from '../session/record.js'
import type { SessionsOf } from '../store/session-index.js'
import type { SessionStore } from '../store/session-store.js'
import { StoreUnavailableError } from '../store/unavailable.js'
import type { Background } from '../support/background.js'
import { within } from '../support/within.js'
import type { Profiles } from './profiles.js'

export interface LogOutParts {
  /** The setting `logout`. */
  readonly logout: Config['logout']
  readonly idp: Pick<IdentityProvider, 'metadata' | 'revokeRefreshToken' | 'endSessionUrl'>
  readonly profiles: Pick<Profiles, 'forget'>
  readonly store: Pick<SessionStore, 'look' | 'read' | 'logOut' | 'logOutAll'>
  readonly background: Background
}

/**
 * Logs the session out in the store. With `logout: revoke`, also revokes its refresh token in the background. Works even
 * if the identity provider is down. Returns the address that signs the browser out at the identity provider, or
 * undefined if the browser should go to the start page.
 * @param session the session of the browser, if it has one
 */
export type LogOut = (session: CookieSession | undefined, log: Log) => Promise<string | undefined>

/**
 * Ends sessions at all replicas, also those that are being refreshed, and returns their number. Unless `logout` is `local`,
 * also revokes their refresh tokens in the background, as far as the store or this process has them.
 * @param issuedAt the `iat` of a logout token; see `SessionStore.logOutAll`
 * @throws StoreUnavailableError if the sessions cannot be found now. No session has ended then.
 */
export type EndSessions = (of: SessionsOf, issuedAt: number | undefined, log: Log) => Promise<number>

export interface LogOuts {
  readonly logOut: LogOut
  /**
   * Like `logOut`, but ends all sessions of the person. An old copy of a cookie ends only its own session.
   * @throws StoreUnavailableError if the sessions cannot be found now. No session has ended then.
   */
  readonly logOutEverywhere: LogOut
  readonly endSessions: EndSessions
}

// A person who logs out should not wait longer for a provider that does not answer.
const DISCOVERY_TIMEOUT_MS = 2000
// Revocations of a person with many sessions. The queue of the endpoint has more places, so other logouts do not wait.
const REVOKED_AT_ONCE = 16

export function createLogOuts(parts: LogOutParts): LogOuts {
  const { logout, idp, profiles, store, background } = parts

  // Runs in the background, so the redirect does not wait for it. A refresh that is still in progress finds the logout in
  // the store and revokes the refresh token that it receives.
  async function revoke(session: SessionRecord | undefined, log: Log): Promise<void> {
    if (!session) {
      const message = 'refresh token not revoked: the session is in Redis, which does not have it or cannot be used now'
      log.info({ event: 'revocation_unavailable' }, message)
      return
    }
    try {
      const { revocationEndpoint } = await idp.metadata()
      if (revocationEndpoint === undefined) {
        log.info({ event: 'revocation_unavailable' }, 'refresh token not revoked: the provider has no such endpoint')
        return
      }
      await idp.revokeRefreshToken(session.fields.refresh_token)
      log.info({ event: 'revoked' }, 'refresh token revoked')
    } catch (error) {
      log.warn({ event: 'revocation_failed', err: error }, 'refresh token not revoked')
    }
  }

  async function revokeAll(records: readonly SessionRecord[], log: Log): Promise<void> {
    const remaining = [...records]
    const work = async () => {
      for (let record = remaining.pop(); record; record = remaining.pop()) await revoke(record, log)
    }
    await Promise.all(Array.from({ length: REVOKED_AT_ONCE }, work))
  }

  async function endSessionUrl(session: SessionRecord | undefined, log: Log): Promise<string | undefined> {
    try {
      const url = await within(DISCOVERY_TIMEOUT_MS, idp.endSessionUrl(session?.identity?.idToken))
      if (url !== undefined) return url
      log.warn({ event: 'end_session_unavailable' }, 'logged out here only: the provider has no end-session endpoint')
    } catch (error) {
      log.warn({ event: 'end_session_unavailable', err: error }, 'logged out here only: the provider did not answer')
    }
    return undefined
  }

  async function logOut(session: CookieSession | undefined, log: Log): Promise<string | undefined> {
    let newest: SessionRecord | undefined
    if (session) {
      profiles.forget(session.id)
      newest = await store.logOut(session)
      if (logout === 'revoke') void background.add(revoke(newest, log))
    }
    log.info({ event: 'logout', had_session: session !== undefined }, 'logout')
    return logout === 'idp' ? endSessionUrl(newest, log) : undefined
  }

  async function endSessions(of: SessionsOf, issuedAt: number | undefined, log: Log): Promise<number> {
    const ended = await store.logOutAll(of, issuedAt)
    for (const { id } of ended) profiles.forget(id)
    const records = ended.flatMap(({ record }) => (record ? [record] : []))
    if (logout !== 'local') void background.add(revokeAll(records, log))
    return ended.length
  }

  /** Returns the session of the browser if it can still be used. */
  async function liveSession(session: CookieSession): Promise<SessionRecord | undefined> {
    if (isKeptInRedis(session)) {
      const read = await store.read(session)
      if (read.kind === 'away') throw new StoreUnavailableError('store')
      if (read.kind === 'wait') throw new StoreUnavailableError('pending')
      return read.kind === 'live' ? read.record : undefined
    }
    const { kind } = await store.look(session)
    return kind === 'current' || kind === 'newer' ? session : undefined
  }

  return {
    logOut,
    async logOutEverywhere(session, log) {
      // Somebody with an old copy of a cookie must not be able to end the other sessions of the person.
      const live = session && (await liveSession(session))
      if (live?.identity) {
        const { iss, sub } = live.identity
        const sessions = await endSessions({ iss, sub }, undefined, log)
        log.info({ event: 'logout_everywhere', sessions }, 'all sessions of a person were logged out')
      }
      return logOut(live ?? session, log)
    },
    endSessions
  }
}
