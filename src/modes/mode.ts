/**
 * The interface of the two modes. In single mode, a session has one access token, which stays on the server. In dual mode, a
 * session has an internal token, which stays on the server, and a public token with fewer scopes, which the browser may get. The
 * rest of the server uses this interface and does not depend on the mode.
 */
import type { UserInfo } from '../provider/client.js'
import type { IdTokenClaims } from '../provider/id-token.js'
import type { CompleteSession, HalfRefreshedSession, SessionFields } from '../session/record.js'
import type { CheckedClaims } from './access.js'

/** An access token for handlers and pages. */
export interface TokenObject {
  readonly access_token: string
  /** The remaining lifetime at the time of the request, in whole seconds. */
  readonly expires_in: number
}

export interface Tokens {
  readonly internal: TokenObject
  /** In single mode, this is the same token as `internal`. */
  readonly public: TokenObject
}

export interface AuthorizationCode {
  readonly code: string
  readonly codeVerifier: string
  readonly nonce: string
  /** The time limit of the token request, in milliseconds. */
  readonly timeoutMs: number
}

/**
 * The tokens of a session before, during or after a login or a refresh. A half-refreshed session (dual mode) has a new internal
 * token, and needs a second token request for the public token. Until `internalExpiresAt`, the first request need not be
 * repeated.
 */
export type TokenState =
  | Pick<CompleteSession, 'kind' | 'fields' | 'identity'>
  | Pick<HalfRefreshedSession, 'kind' | 'fields' | 'identity' | 'internalExpiresAt'>

/** The result of one token request. */
export interface TokenStep {
  readonly state: TokenState
  /**
   * The claims of the checked ID token, if the response had one. In dual mode, the claims from the second request are not
   * returned, because they may be fewer.
   */
  readonly claims?: CheckedClaims | undefined
}

export interface ExchangedCode extends TokenStep {
  /** The checked claims of the ID token. Undefined if `openid` was not requested. The session does not contain these claims. */
  readonly claims: IdTokenClaims | undefined
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
   * @throws OAuthError or ProviderError; `rescuedRefreshToken` returns the new refresh token of an unusable response
   */
  nextRequest(state: TokenState, timeoutMs: number): Promise<TokenStep>
  /**
   * Returns the access tokens of a session, with their remaining lifetime.
   * @param now milliseconds since the epoch
   */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}
