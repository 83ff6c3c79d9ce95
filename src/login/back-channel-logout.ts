/**
 * Ends the sessions that a logout token of the identity provider names (OpenID Connect Back-Channel Logout section
 * 2.7). This file is loaded only with the setting `platform.backChannelLogout`.
 */
import {
  createLogoutTokenCheck,
  type LogoutTokenParts,
  MAX_AGE_SECONDS,
  UnusableLogoutTokenError
} from '../provider/logout-token.js'
import type { Log } from '../refresh/report.js'
import type { SessionStore } from '../store/session-store.js'
import type { EndSessions } from './log-out.js'

export interface BackChannelLogoutParts extends LogoutTokenParts {
  readonly store: Pick<SessionStore, 'claim' | 'keepClaim' | 'release'>
  readonly endSessions: EndSessions
}

/**
 * Ends the sessions that the logout token names. Returns false if the token cannot be used.
 * @throws ProviderError if the keys of the provider cannot be read
 * @throws StoreUnavailableError if the sessions cannot be found now. The same token can then be sent again.
 */
export type BackChannelLogout = (logoutToken: string, log: Log) => Promise<boolean>

// A token is valid until MAX_AGE_SECONDS after its `iat`, which may be CLOCK_LEEWAY_SECONDS ahead of this server's clock.
const CLAIM_MS = 2 * MAX_AGE_SECONDS * 1000
// A claim is short until the sessions have ended. If this process or Redis fails in between, the claim cannot be released, and
// the provider must be able to send the token again.
const FIRST_CLAIM_MS = 5000

export function createBackChannelLogout(parts: BackChannelLogoutParts): BackChannelLogout {
  const { store, endSessions } = parts
  const check = createLogoutTokenCheck(parts)

  function reject(reason: string, log: Log): false {
    const message = 'a logout token was rejected, so no session was ended'
    log.warn({ event: 'back_channel_logout_rejected', reason }, message)
    return false
  }

  return async function backChannelLogout(logoutToken, log) {
    const token = await check(logoutToken).catch((error: unknown) => {
      if (error instanceof UnusableLogoutTokenError) return error.reason
      throw error
    })
    if (typeof token === 'string') return reject(token, log)
    const { iss, sid, sub, jti, iat } = token
    const tokenId = JSON.stringify([iss, jti])
    if (!(await store.claim(tokenId, FIRST_CLAIM_MS))) return reject('jti', log)
    try {
      const sessions = await endSessions({ iss, sid, sub }, iat, log)
      await store.keepClaim(tokenId, CLAIM_MS)
      const by = sid === undefined ? 'sub' : 'sid'
      log.info({ event: 'back_channel_logout', sessions, by }, 'the identity provider has ended sessions')
      return true
    } catch (error) {
      await store.release(tokenId)
      throw error
    }
  }
}
