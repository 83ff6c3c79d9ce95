/**
 * Ends the sessions that a logout token of the identity provider names (OpenID Connect Back-Channel Logout section
 * 2.7). This file is loaded only with the setting `platform.backchannelLogout`.
 */
import type { Metrics } from '../base/metrics.js'
import { createLogoutTokenCheck, type LogoutTokenOptions, UnusableLogoutTokenError } from '../provider/logout-token.js'
import type { UserSessions } from '../sessions/index.js'
import type { EndSessions } from './log-out.js'
import type { Log } from './refresh-report.js'

interface BackchannelLogoutDependencies extends LogoutTokenOptions {
  readonly userSessions: Pick<UserSessions, 'isUsed' | 'markUsed'>
  readonly endSessions: EndSessions
  readonly metrics: Metrics
}

/**
 * Ends the sessions that the logout token names. Returns false if the token cannot be used.
 * @throws UnknownKeyError if the key of the token is unknown, and it is too early to request the keys of the provider again
 * @throws ProviderError if the keys of the provider cannot be read
 * @throws StoreUnavailableError if a logout is not stored now. The same token can then be sent again.
 */
export type BackchannelLogout = (logoutToken: string, log: Log) => Promise<boolean>

export function createBackchannelLogout(dependencies: BackchannelLogoutDependencies): BackchannelLogout {
  const { userSessions, endSessions, metrics } = dependencies
  const check = createLogoutTokenCheck(dependencies)

  function reject(reason: string, log: Log): false {
    const message = 'a logout token was rejected, so no session was ended'
    log.warn({ event: 'backchannel_logout_rejected', reason }, message)
    return false
  }

  return async function backchannelLogout(logoutToken, log) {
    const token = await check(logoutToken).catch((error: unknown) => {
      if (error instanceof UnusableLogoutTokenError) return error.reason
      throw error
    })
    if (typeof token === 'string') return reject(token, log)
    const { iss, sid, sub, jti, iat } = token
    const tokenId = JSON.stringify([iss, jti])
    if (await userSessions.isUsed(tokenId)) return reject('jti', log)
    const sessions = await endSessions({ iss, sid, sub }, iat, log)
    // Do not mark the token as used before this point. If a logout cannot be stored, `endSessions` throws and this line is not
    // reached, so the provider can send the token again.
    await userSessions.markUsed(tokenId)
    metrics.count('logouts_total', { by: 'provider' })
    const by = sid === undefined ? 'sub' : 'sid'
    log.info({ event: 'backchannel_logout_succeeded', sessions, by }, 'the identity provider has ended sessions')
    return true
  }
}
