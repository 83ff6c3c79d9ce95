/**
 * The two modes. In single mode, a session has one access token, which stays on the server. In dual mode, a session has an internal
 * token, which stays on the server, and a public token with fewer scopes, which the browser may get. The rest of the server uses
 * the interface `Mode` and does not depend on the mode. The folder, in the order of a session's life:
 *
 * - `begin-login`, `transaction`, `safe-return-to`: the start of a login, its data, and the page to which it returns
 * - `complete-login`, `code-exchange`: the callback, and the exchange of its code
 * - `token-requests`, `scopes`: the requests of both modes, the checks of their responses, and what was granted
 * - `access`, `access-check`, `authentication`: who may sign in, when that is checked, and how a user must sign in
 * - `refreshes`, `refresh`, `schedule`: the current session of a request, its refresh, and when that is due
 * - `failure`, `evidence`, `refresh-report`: what an error means, when refusals end a session, and the log line
 * - `profiles`, `display-name`: the name of the user; `internal-token-watch`: whether the provider keeps the internal token
 * - `log-out`, `backchannel-logout`: the end of a session, by its user or by the provider
 */
import type { Config } from '../config/settings.js'
import type { SessionFields } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import type { IdTokenClaims, UserInfo } from '../provider/id-token.js'
import { OAuthError, unusableTokens } from '../provider/provider-error.js'
import type { CheckedClaims } from './access.js'
import { fallbackNames, firstName, fullName } from './display-name.js'
import { excessScopes, listScopes } from './scopes.js'
import {
  type AuthorizationCode,
  codeGrant,
  type ModeDependencies,
  type RefreshedTokenSet,
  refreshGrant,
  revokeInBackground,
  type TokenObject,
  type TokenState,
  tokenObject
} from './token-requests.js'

export interface Tokens {
  readonly internal: TokenObject
  /** In single mode, this is the same token as `internal`. */
  readonly public: TokenObject
}

/** The result of one token request. */
export interface TokenStep {
  readonly state: TokenState
  /**
   * The claims of the checked ID token, if the response had one. In the response to the second request of dual mode, they may be
   * fewer.
   */
  readonly claims?: CheckedClaims | undefined
}

export interface ExchangedCode extends TokenStep {
  /** The checked claims of the ID token. Undefined if `openid` was not requested. The session does not contain these claims. */
  readonly claims: IdTokenClaims | undefined
  /** The requested scopes that were not granted. */
  readonly scopesMissing: readonly string[]
}

export interface Mode {
  readonly name: 'single' | 'dual'
  /** The scopes that a login requests, separated by spaces. */
  readonly loginScope: string
  /** True if `GET /api/auth/token` gives the browser an access token. */
  readonly offersPublicToken: boolean
  /**
   * Exchanges the authorization code for tokens. If the response is unusable but contains a refresh token, revokes this refresh
   * token.
   * @throws OAuthError or ProviderError
   */
  exchangeCode(grant: AuthorizationCode): Promise<ExchangedCode>
  /** True if the next token request is the second one of dual mode. */
  isSecondRequest(state: TokenState): boolean
  /**
   * Sends the next token request of a refresh, or of a login after its code exchange. The request contains the refresh token of
   * `state`.
   * @param timeoutMs the time limit in milliseconds
   * @param omitsScope true if the previous request for these tokens had the reason `scope_refused`
   * @throws OAuthError or ProviderError, which has the new refresh token of an unusable response
   */
  nextRequest(state: TokenState, timeoutMs: number, omitsScope?: boolean): Promise<TokenStep>
  /**
   * Returns the access tokens of a session, with their remaining lifetime.
   * @param now milliseconds since the epoch
   */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}

/**
 * Creates the configured mode.
 * @example const { state } = await createMode(config, idp, Date.now).exchangeCode(grant)
 */
export function createMode(
  { mode, platform, logout }: Config,
  idp: IdentityProvider,
  now: () => number,
  onIgnoredIdToken?: ModeDependencies['onIgnoredIdToken']
): Mode {
  const { clientId, backchannelLogout: keepsSid } = platform
  const dependencies = { idp, now, clientId, keepsIdToken: logout.idp, keepsSid, onIgnoredIdToken }
  return mode === 'dual' ? createDualMode(platform, dependencies) : createSingleMode(platform, dependencies)
}

/** Creates the mode with one access token per session, which stays on the server. */
export function createSingleMode({ scopes }: Pick<Config['platform'], 'scopes'>, dependencies: ModeDependencies): Mode {
  const { idp } = dependencies
  const scope = scopes.join(' ')
  // Salesforce refuses a refresh that names scopes. This process remembers it after the first refresh that succeeded without them.
  let refusesScope = false

  async function refresh(state: TokenState, timeoutMs: number, omitsScope: boolean): Promise<RefreshedTokenSet> {
    if (!omitsScope) {
      return refreshGrant(dependencies, state, scope, timeoutMs).catch(async (error: unknown) => {
        if (!isScopeRefusal(error) || (await idp.metadata()).quirks.needsRefreshScope) throw error
        const detail = `it refused a refresh that names scopes (${error.status} ${error.error}); the next request names none`
        throw unusableTokens(detail, { reason: 'scope_refused' })
      })
    }
    const tokenSet = await refreshGrant(dependencies, state, undefined, timeoutMs)
    const { accessToken, idToken, refreshToken } = tokenSet
    const excess = excessScopes(tokenSet, scopes)
    if (excess.length > 0) {
      // A login from before a change of the setting may have more scopes than the setting allows now.
      revokeInBackground(idp, refreshToken)
      const list = listScopes(excess, [accessToken, refreshToken, idToken])
      const detail = `a refresh that named no scope returned more than platform.scopes (${list})`
      throw unusableTokens(detail, { meaning: 'end' })
    }
    refusesScope = true
    return tokenSet
  }

  function stateOf({ accessToken, refreshToken, expiresAt, identity }: Omit<RefreshedTokenSet, 'claims'>): TokenState {
    const fields = { token: accessToken, refresh_token: refreshToken, expires_at: expiresAt }
    return { kind: 'complete', fields, identity }
  }

  function displayName(userInfo: UserInfo): string {
    return firstName(userInfo.name, fullName(userInfo), ...fallbackNames(userInfo))
  }

  return {
    name: 'single',
    loginScope: scope,
    offersPublicToken: false,
    async exchangeCode(grant) {
      const { claims, scopesMissing, ...first } = await codeGrant(dependencies, grant, { scopes, displayName })
      return { state: stateOf(first), claims, scopesMissing }
    },
    isSecondRequest: () => false,
    async nextRequest(state, timeoutMs, omitsScope = false) {
      const { claims, ...refreshed } = await refresh(state, timeoutMs, omitsScope || refusesScope)
      return { state: stateOf(refreshed), claims }
    },
    tokens(fields, now) {
      const only = tokenObject(fields.token, fields.expires_at, now)
      return { internal: only, public: only }
    },
    displayName
  }
}

/** True for the codes with which providers refuse a request because it names scopes. */
function isScopeRefusal(error: unknown): error is OAuthError {
  if (!(error instanceof OAuthError) || error.meaning === 'failure') return false
  return error.error === 'invalid_scope' || error.error === 'invalid_request'
}

type Scopes = Pick<Config['platform'], 'internalTokenScopes' | 'publicTokenScopes'>

/**
 * Creates dual mode. A session has one refresh token and two access tokens. The internal token stays on the server. The
 * public token has fewer scopes and is for the browser. A login or refresh needs two token requests. The first returns
 * the internal token and a refresh token, and the second uses this refresh token to request the public token (RFC 6749
 * section 6 allows fewer scopes).
 */
export function createDualMode(
  { internalTokenScopes: internalScopes, publicTokenScopes: publicScopes }: Scopes,
  dependencies: ModeDependencies
): Mode {
  const { now } = dependencies
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  function isHalfRefreshed(state: TokenState): state is Extract<TokenState, { readonly kind: 'half-refreshed' }> {
    return state.kind === 'half-refreshed' && state.internalExpiresAt > now()
  }

  async function requestInternalToken(state: TokenState, timeoutMs: number): Promise<TokenStep> {
    const { claims, ...internal } = await refreshGrant(dependencies, state, internalScope, timeoutMs)
    return { state: halfRefreshed(internal, state.fields), claims }
  }

  function halfRefreshed(internal: Omit<RefreshedTokenSet, 'claims'>, earlier: Partial<SessionFields>): TokenState {
    const { accessToken, refreshToken, expiresAt, identity } = internal
    const fields = { expires_at: expiresAt, ...earlier, internal_token: accessToken, refresh_token: refreshToken }
    return { kind: 'half-refreshed', fields, identity, internalExpiresAt: expiresAt }
  }

  async function requestPublicToken(state: TokenState, expires_at: number, timeoutMs: number): Promise<TokenStep> {
    const granted = await refreshGrant(dependencies, state, publicScope, timeoutMs)
    const { claims, identity, accessToken, refreshToken } = granted
    checkPublicToken(granted, state.fields)
    const fields = { ...state.fields, public_token: accessToken, refresh_token: refreshToken, expires_at }
    return { state: { kind: 'complete', fields, identity }, claims }
  }

  function checkPublicToken(
    { accessToken, refreshToken, idToken, scope }: RefreshedTokenSet,
    { internal_token, refresh_token }: SessionFields
  ): void {
    // A provider may return the access token that it has issued before. The browser must not get the scopes of that token.
    const granted = accessToken === internal_token ? [...internalScopes, ...(scope ?? [])] : scope
    const excess = excessScopes({ accessToken, scope: granted }, publicScopes)
    if (excess.length === 0) return
    const list = listScopes(excess, [accessToken, refreshToken, idToken])
    throw unusableTokens(`the public token has more than the public scopes (${list})`, {
      refreshToken: refreshToken === refresh_token ? undefined : refreshToken
    })
  }

  function displayName(userInfo: UserInfo): string {
    return firstName(fullName(userInfo), userInfo.name, ...fallbackNames(userInfo))
  }

  return {
    name: 'dual',
    loginScope: internalScope,
    offersPublicToken: true,
    async exchangeCode(grant) {
      const login = { scopes: internalScopes, displayName }
      const { claims, scopesMissing, ...internal } = await codeGrant(dependencies, grant, login)
      return { state: halfRefreshed(internal, {}), claims, scopesMissing }
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
