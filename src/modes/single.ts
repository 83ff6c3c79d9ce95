import type { Config } from '../config/settings.js'
import type { UserInfo } from '../provider/client.js'
import { fallbackNames, firstName, fullName } from './display-name.js'
import { exchangeCode, expiresAt, type ModeParts, refreshGrant, tokenObject } from './grants.js'
import type { Mode } from './mode.js'

/** Creates the mode with one access token per session, which stays on the server. */
export function createSingleMode({ scopes }: Pick<Config['platform'], 'scopes'>, parts: ModeParts): Mode {
  const { now } = parts
  const scope = scopes.join(' ')

  function displayName(userInfo: UserInfo): string {
    return firstName(userInfo.name, fullName(userInfo), ...fallbackNames(userInfo))
  }

  return {
    name: 'single',
    loginScope: scope,
    offersPublicToken: false,
    async exchangeCode(grant) {
      const { identity, claims, ...tokenSet } = await exchangeCode(parts, grant, { scopes, displayName })
      const fields = {
        token: tokenSet.accessToken,
        refresh_token: tokenSet.refreshToken,
        expires_at: expiresAt(tokenSet, now())
      }
      return { state: { kind: 'complete', fields, identity }, claims }
    },
    isSecondRequest: () => false,
    async nextRequest(state, timeoutMs) {
      const { claims, nextRefreshToken, ...tokenSet } = await refreshGrant(parts, state, scope, timeoutMs)
      const fields = {
        token: tokenSet.accessToken,
        refresh_token: nextRefreshToken,
        expires_at: expiresAt(tokenSet, now())
      }
      return { state: { kind: 'complete', fields, identity: state.identity }, claims }
    },
    tokens(fields, now) {
      const only = tokenObject(fields.token, fields.expires_at, now)
      return { internal: only, public: only }
    },
    displayName
  }
}
