import type { Config } from '../config/settings.js'
import type { UserInfo } from '../idp/client.js'
import { rescuedRefreshToken } from '../idp/errors.js'
import { fallbackNames, firstName, fullName } from './display-name.js'
import { checkRefreshedIdentity, exchangeCode, expiresAt, type ModeParts, tokenObject } from './grants.js'
import type { Mode } from './mode.js'

/** Creates the mode with one access token per session, which stays on the server. */
export function createSingleMode({ scopes }: Pick<Config['platform'], 'scopes'>, parts: ModeParts): Mode {
  const { idp, now } = parts
  const scope = scopes.join(' ')

  function displayName(userInfo: UserInfo): string {
    return firstName(userInfo.name, fullName(userInfo), ...fallbackNames(userInfo))
  }

  return {
    name: 'single',
    loginScope: scope,
    offersPublicToken: false,
    async exchangeCode(grant) {
      const tokenSet = await exchangeCode(parts, grant, { scopes, displayName })
      const fields = {
        token: tokenSet.accessToken,
        refresh_token: tokenSet.refreshToken,
        expires_at: expiresAt(tokenSet, now())
      }
      return { fields, identity: tokenSet.identity, claims: tokenSet.claims }
    },
    async refresh({ fields, identity }, { timeoutMs } = {}) {
      const refreshToken = fields.refresh_token
      try {
        const tokenSet = await idp.refreshTokenGrant({ refreshToken, scope, timeoutMs: timeoutMs?.() })
        checkRefreshedIdentity(parts, tokenSet, identity, refreshToken)
        return {
          outcome: 'complete',
          calls: 1,
          fields: {
            token: tokenSet.accessToken,
            refresh_token: tokenSet.refreshToken ?? refreshToken,
            expires_at: expiresAt(tokenSet, now())
          }
        }
      } catch (error) {
        // An unusable response can still contain a new refresh token, and the old one may be invalid now.
        const refresh_token = rescuedRefreshToken(error)
        if (refresh_token === undefined) return { outcome: 'failed', calls: 1, error }
        return { outcome: 'partial', calls: 1, error, state: { fields: { ...fields, refresh_token } } }
      }
    },
    tokens(fields, now) {
      const only = tokenObject(fields.token, fields.expires_at, now)
      return { internal: only, public: only }
    },
    displayName
  }
}
