import type { Config } from '../config/settings.js'
import type { UserInfo } from '../idp/client.js'
import { OAuthError, rescuedRefreshToken, UnusableTokenSetError, UpstreamError } from '../idp/errors.js'
import type { TokenSet } from '../idp/token-set.js'
import type { Identity, SessionFields } from '../session/record.js'
import { fallbackNames, firstName, fullName } from './display-name.js'
import {
  abandon,
  checkRefreshedIdentity,
  excessScopes,
  exchangeCode,
  expiresAt,
  type ModeParts,
  repeatOnceIfBusy,
  tokenObject
} from './grants.js'
import { LoginInterruptedError, type Mode, type RefreshState } from './mode.js'

type Scopes = Pick<Config['platform'], 'internalScopes' | 'publicScopes'>

/**
 * Creates dual mode. A session has one refresh token and two access tokens. The internal token stays on the server. The
 * public token has fewer scopes and is for the browser. A login or refresh needs two token requests. The first returns
 * the internal token and a refresh token, and the second uses this refresh token to request the public token (RFC 6749
 * section 6 allows fewer scopes).
 */
export function createDualMode({ internalScopes, publicScopes }: Scopes, parts: ModeParts): Mode {
  const { idp, now, wait } = parts
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  function requestPublicToken(refreshToken: string, timeoutMs?: number): Promise<TokenSet> {
    return idp.refreshTokenGrant({ refreshToken, scope: publicScope, isSecondStep: true, timeoutMs })
  }

  async function refreshInternal(state: RefreshState, timeoutMs?: number): Promise<RefreshState> {
    const { fields, identity } = state
    const refreshToken = fields.refresh_token
    const internal = await idp.refreshTokenGrant({ refreshToken, scope: internalScope, timeoutMs })
    checkRefreshedIdentity(parts, internal, identity, refreshToken)
    return {
      ...state,
      fields: {
        ...fields,
        internal_token: internal.accessToken,
        refresh_token: internal.refreshToken ?? refreshToken
      },
      internalExpiresAt: expiresAt(internal, now())
    }
  }

  async function refreshPublic({ fields, identity, internalExpiresAt }: RefreshState, timeoutMs?: number) {
    const { internal_token, refresh_token } = fields
    const publicTokenSet = await requestPublicToken(refresh_token, timeoutMs)
    checkPublicTokenSet(publicTokenSet, identity, refresh_token)
    return {
      public_token: publicTokenSet.accessToken,
      internal_token,
      refresh_token: publicTokenSet.refreshToken ?? refresh_token,
      expires_at: internalExpiresAt
    } as SessionFields
  }

  /**
   * @param usedToken the refresh token that was sent
   * @throws OtherIdentityError if the response is about another person
   * @throws UnusableTokenSetError if the response cannot be used for another reason
   */
  function checkPublicTokenSet(publicTokenSet: TokenSet, identity: Identity | undefined, usedToken: string): void {
    checkRefreshedIdentity(parts, publicTokenSet, identity, usedToken)
    const excess = excessScopes(publicTokenSet, publicScopes)
    if (excess.length === 0) return
    const named = excess.filter(name => internalScopes.includes(name))
    const others = excess.length - named.length
    const list = [...named, ...(others > 0 ? [`${others} unknown`] : [])].join(', ')
    const detail = `the public token has more than the public scopes (${list})`
    throw new UnusableTokenSetError(detail, publicTokenSet.refreshToken)
  }

  function displayName(userInfo: UserInfo): string {
    return firstName(fullName(userInfo), userInfo.name, ...fallbackNames(userInfo))
  }

  return {
    name: 'dual',
    loginScope: internalScope,
    offersPublicToken: true,
    async exchangeCode(grant) {
      const internal = await exchangeCode(parts, grant, { scopes: internalScopes, displayName })
      const { identity, claims } = internal
      const expires_at = expiresAt(internal, now())
      let refresh_token = internal.refreshToken
      try {
        const publicTokenSet = await repeatOnceIfBusy(() => requestPublicToken(internal.refreshToken), wait)
        checkPublicTokenSet(publicTokenSet, identity, internal.refreshToken)
        refresh_token = publicTokenSet.refreshToken ?? refresh_token
        const public_token = publicTokenSet.accessToken
        const internal_token = internal.accessToken
        return { fields: { public_token, internal_token, refresh_token, expires_at }, identity, claims }
      } catch (error) {
        // The refresh token is not revoked, because a busy provider should not get another request.
        if (error instanceof UpstreamError && error.isBusy) throw new LoginInterruptedError(error)
        abandon(idp, rescuedRefreshToken(error) ?? refresh_token)
        if (error instanceof OAuthError) {
          const { error: code, status } = error
          throw new UpstreamError('token', 'unusable', `it rejected the public scopes (${code})`, { status })
        }
        throw error
      }
    },
    async refresh(state, { timeoutMs, betweenSteps } = {}) {
      const isResumed = state.internalExpiresAt !== undefined && state.internalExpiresAt > now()
      let reached = state
      let calls = 0
      try {
        if (!isResumed) {
          calls++
          reached = await refreshInternal(state, timeoutMs?.())
          await betweenSteps?.(reached)
        }
        calls++
        return { outcome: 'complete', calls, fields: await refreshPublic(reached, timeoutMs?.()) }
      } catch (error) {
        // An unusable response can still contain a new refresh token, and the old one may be invalid now.
        const refresh_token = rescuedRefreshToken(error)
        if (refresh_token !== undefined) reached = { ...reached, fields: { ...reached.fields, refresh_token } }
        if (reached === state) return { outcome: 'failed', calls, error }
        return { outcome: 'partial', calls, error, state: reached }
      }
    },
    tokens(fields, now) {
      return {
        internal: tokenObject(fields.internal_token, fields.expires_at, now),
        public: tokenObject(fields.public_token, fields.expires_at, now)
      }
    },
    displayName
  }
}
