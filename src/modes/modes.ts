/** Creates single mode (one access token per session) or dual mode (two access tokens), as configured. */
import type { Config } from '../config/settings.js'
import type { IdentityProvider, TokenSet, UserInfo } from '../provider/client.js'
import { UnusableTokenSetError } from '../provider/errors.js'
import {
  excessScopes,
  exchangeCode,
  expiresAt,
  fallbackNames,
  firstName,
  fullName,
  type ModeDependencies,
  refreshGrant,
  tokenObject
} from './grants.js'
import type { Mode, TokenState, TokenStep } from './mode.js'

/** @example const { state } = await createMode(config, idp, Date.now).exchangeCode(grant) */
export function createMode(config: Config, idp: IdentityProvider, now: () => number): Mode {
  const { platform, logout } = config
  const { clientId, pkce, backChannelLogout: keepsSid } = platform
  const dependencies: ModeDependencies = { idp, now, clientId, pkce, keepsIdToken: logout === 'idp', keepsSid }
  return config.mode === 'dual' ? createDualMode(platform, dependencies) : createSingleMode(platform, dependencies)
}

/** Creates the mode with one access token per session, which stays on the server. */
export function createSingleMode({ scopes }: Pick<Config['platform'], 'scopes'>, dependencies: ModeDependencies): Mode {
  const { now } = dependencies
  const scope = scopes.join(' ')

  function displayName(userInfo: UserInfo): string {
    return firstName(userInfo.name, fullName(userInfo), ...fallbackNames(userInfo))
  }

  return {
    name: 'single',
    loginScope: scope,
    offersPublicToken: false,
    async exchangeCode(grant) {
      const { identity, claims, ...tokenSet } = await exchangeCode(dependencies, grant, { scopes, displayName })
      const fields = {
        token: tokenSet.accessToken,
        refresh_token: tokenSet.refreshToken,
        expires_at: expiresAt(tokenSet, now())
      }
      return { state: { kind: 'complete', fields, identity }, claims }
    },
    isSecondRequest: () => false,
    async nextRequest(state, timeoutMs) {
      const { claims, nextRefreshToken, ...tokenSet } = await refreshGrant(dependencies, state, scope, timeoutMs)
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

type Scopes = Pick<Config['platform'], 'internalScopes' | 'publicScopes'>

/**
 * Creates dual mode. A session has one refresh token and two access tokens. The internal token stays on the server. The
 * public token has fewer scopes and is for the browser. A login or refresh needs two token requests. The first returns
 * the internal token and a refresh token, and the second uses this refresh token to request the public token (RFC 6749
 * section 6 allows fewer scopes).
 */
export function createDualMode({ internalScopes, publicScopes }: Scopes, dependencies: ModeDependencies): Mode {
  const { now } = dependencies
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  function isHalfRefreshed(state: TokenState): state is Extract<TokenState, { readonly kind: 'half-refreshed' }> {
    return state.kind === 'half-refreshed' && state.internalExpiresAt > now()
  }

  async function requestInternalToken(state: TokenState, timeoutMs: number): Promise<TokenStep> {
    const { claims, nextRefreshToken, ...internal } = await refreshGrant(dependencies, state, internalScope, timeoutMs)
    const fields = { ...state.fields, internal_token: internal.accessToken, refresh_token: nextRefreshToken }
    const internalExpiresAt = expiresAt(internal, now())
    return { state: { kind: 'half-refreshed', fields, identity: state.identity, internalExpiresAt }, claims }
  }

  async function requestPublicToken(state: TokenState, expires_at: number, timeoutMs: number): Promise<TokenStep> {
    const { nextRefreshToken, ...publicTokenSet } = await refreshGrant(dependencies, state, publicScope, timeoutMs)
    checkPublicScopes(publicTokenSet)
    const { accessToken } = publicTokenSet
    const fields = { ...state.fields, public_token: accessToken, refresh_token: nextRefreshToken, expires_at }
    return { state: { kind: 'complete', fields, identity: state.identity } }
  }

  function checkPublicScopes(publicTokenSet: TokenSet): void {
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
      const { identity, claims, ...internal } = await exchangeCode(dependencies, grant, {
        scopes: internalScopes,
        displayName
      })
      const expires_at = expiresAt(internal, now())
      const fields = { internal_token: internal.accessToken, refresh_token: internal.refreshToken, expires_at }
      return { state: { kind: 'half-refreshed', fields, identity, internalExpiresAt: expires_at }, claims }
    },
    isSecondRequest: isHalfRefreshed,
    nextRequest: (state, timeoutMs) =>
      isHalfRefreshed(state)
        ? requestPublicToken(state, state.internalExpiresAt, timeoutMs)
        : requestInternalToken(state, timeoutMs),
    tokens(fields, now) {
      return {
        internal: tokenObject(fields.internal_token, fields.expires_at, now),
        public: tokenObject(fields.public_token, fields.expires_at, now)
      }
    },
    displayName
  }
}
