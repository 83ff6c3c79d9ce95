/**
 * The interface of the two modes. In single mode, a session has one access token, which stays on the server. In dual
 * mode, it has an internal token, which stays on the server, and a public token with fewer scopes, which the browser
 * may get. The rest of the server uses this interface and does not depend on the mode.
 */
import type { UserInfo } from '../idp/client.js'
import type { UpstreamError } from '../idp/errors.js'
import type { IdTokenClaims } from '../idp/id-token.js'
import type { SessionFields, SessionRecord } from '../session/record.js'

/** An access token for handlers and pages (service contract, section 2.3). */
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

export interface CodeGrant {
  readonly code: string
  readonly codeVerifier: string
  readonly nonce: string
  /**
   * The time limit of the token request, in milliseconds. The default is the time limit for all calls to the provider.
   */
  readonly timeoutMs?: number
}

/** The part of a session that comes from the provider. */
export type Login = Pick<SessionRecord, 'fields' | 'identity'>

export interface ExchangedCode extends Login {
  /** The checked claims of the ID token. Undefined if `openid` was not requested. They are not part of the session. */
  readonly claims: IdTokenClaims | undefined
}

/**
 * A session before or during its refresh. In dual mode, a refresh has two steps. The first step requests a new internal
 * token, and the second step requests a new public token.
 */
export interface RefreshState extends Login {
  /**
   * The expiry of the new internal token, in milliseconds since the epoch. Only set in dual mode between the two steps.
   * Until this time, a later refresh can skip the first step.
   */
  readonly internalExpiresAt?: number
}

/** The result of a refresh. `calls` is the number of token requests that were sent. */
export type Refreshed =
  /** All access tokens are new. */
  | { readonly outcome: 'complete'; readonly fields: SessionFields; readonly calls: number }
  /**
   * Only some tokens are new. The session must continue with `state`, because the provider may have invalidated the old
   * refresh token.
   */
  | { readonly outcome: 'partial'; readonly state: RefreshState; readonly calls: number; readonly error: unknown }
  /** The session has no new tokens. */
  | { readonly outcome: 'failed'; readonly calls: number; readonly error: unknown }

export interface RefreshOptions {
  /** The time limit of the next token request, in milliseconds. */
  timeoutMs?(): number
  /**
   * Called between the two steps in dual mode. The second step starts when the promise resolves, and is skipped if it
   * rejects.
   */
  betweenSteps?(reached: RefreshState): Promise<void>
}

/**
 * The provider exchanged the code, but it was too busy for a later request of the same login. The code cannot be used
 * again, so the person must start a new login.
 */
export class LoginInterruptedError extends Error {
  override readonly cause: UpstreamError

  constructor(cause: UpstreamError) {
    super(`the code was exchanged, but the login could not be completed: ${cause.message}`)
    this.name = 'LoginInterruptedError'
    this.cause = cause
  }
}

export interface Mode {
  readonly name: 'single' | 'dual'
  /** The scopes that a login requests, separated by spaces. */
  readonly loginScope: string
  /** True if `GET /api/auth/token` gives the browser an access token. */
  readonly offersPublicToken: boolean
  /**
   * Exchanges the authorization code for the tokens of a session (service contract, section 5.1, step 2).
   * @throws OAuthError, UpstreamError or LoginInterruptedError
   */
  exchangeCode(grant: CodeGrant): Promise<ExchangedCode>
  /** Requests new tokens for a session (service contract, section 5.1, step 3.2). Never rejects. */
  refresh(state: RefreshState, options?: RefreshOptions): Promise<Refreshed>
  /**
   * Returns the access tokens of a session, with their remaining lifetime.
   * @param now milliseconds since the epoch
   */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}
