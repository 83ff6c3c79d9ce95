/**
 * Logs a browser out of this server. Depending on the setting `logout`, also revokes the refresh token or signs the
 * browser out at the identity provider.
 */
import type { Config } from '../config/settings.js'
import type { IdentityProvider } from '../provider/client.js'
import type { Log } from '../refresh/report.js'
import type { SessionRecord } from '../session/record.js'
import type { SessionStore } from '../store/session-store.js'
import type { Background } from '../support/background.js'
import { within } from '../support/within.js'
import type { Profiles } from './profiles.js'

export interface LogOutParts {
  /** The setting `logout`. */
  readonly logout: Config['logout']
  readonly idp: Pick<IdentityProvider, 'metadata' | 'revokeRefreshToken' | 'endSessionUrl'>
  readonly profiles: Pick<Profiles, 'forget'>
  readonly store: Pick<SessionStore, 'logOut'>
  readonly background: Background
}

/**
 * Logs the session out in the store. With `logout: revoke`, also revokes its refresh token in the background. Works even
 * if the identity provider is down. Returns the address that signs the browser out at the identity provider, or
 * undefined if the browser should go to the start page.
 * @param session the session of the browser, if it has one
 */
export type LogOut = (session: SessionRecord | undefined, log: Log) => Promise<string | undefined>

// A person who logs out should not wait longer for a provider that does not answer.
const DISCOVERY_TIMEOUT_MS = 2000

export function createLogOut(parts: LogOutParts): LogOut {
  const { logout, idp, profiles, store, background } = parts

  // Runs in the background, so the redirect does not wait for it. A refresh that is still in progress finds the logout in
  // the store and revokes the refresh token that it receives.
  async function revoke({ fields }: SessionRecord, log: Log): Promise<void> {
    try {
      const { revocationEndpoint } = await idp.metadata()
      if (revocationEndpoint === undefined) {
        log.info({ event: 'revocation_unavailable' }, 'refresh token not revoked: the provider has no such endpoint')
        return
      }
      await idp.revokeRefreshToken(fields.refresh_token)
      log.info({ event: 'revoked' }, 'refresh token revoked')
    } catch (error) {
      log.warn({ event: 'revocation_failed', err: error }, 'refresh token not revoked')
    }
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

  return async function logOut(session, log) {
    if (session) {
      profiles.forget(session.id)
      const newest = await store.logOut(session)
      if (logout === 'revoke') void background.add(revoke(newest, log))
    }
    log.info({ event: 'logout', had_session: session !== undefined }, 'logout')
    return logout === 'idp' ? endSessionUrl(session, log) : undefined
  }
}
