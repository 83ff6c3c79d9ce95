/**
 * The interface of the modes. Single mode has one access token per session, and dual mode has two. The rest of the server
 * uses this interface and does not depend on the mode.
 */
import type { UserInfo } from '../idp/client.js'
import type { UpstreamError } from '../idp/errors.js'
import type { SessionFields, SessionRecord } from '../session/record.js'

/** A token for handlers and pages (contract section 2.3). */
export interface TokenObject {
  readonly access_token: string
  /** The remaining lifetime in whole seconds, at the time of the request. */
  readonly expires_in: number
}

export interface Tokens {
  readonly internal: TokenObject
  /** The same as `internal` in single mode. */
  readonly public: TokenObject
}

export interface CodeGrant {
  readonly code: string
  readonly codeVerifier: string
  readonly nonce: string
  /** The time limit of the token request, in milliseconds. The default is the limit of the transport. */
  readonly timeoutMs?: number
}

/** The part of a session that comes from the provider. */
export type Login = Pick<SessionRecord, 'fields' | 'identity'>

/** The session before a refresh, or after the first step of a refresh. */
export interface RefreshState extends Login {
  /**
   * The expiry of the internal token from the first step, in milliseconds since the epoch. Only set in dual mode, after the
   * first step. Until that time, the refresh can continue with the second step.
   */
  readonly internalExpiresAt?: number
}

/** The result of a refresh. `calls` is the number of token requests. */
export type Refreshed =
  /** All tokens are new. */
  | { readonly outcome: 'complete'; readonly fields: SessionFields; readonly calls: number }
  /** The refresh token was replaced, but not all tokens are new. Continue with `state`, because the old session is unusable. */
  | { readonly outcome: 'partial'; readonly state: RefreshState; readonly calls: number; readonly error: unknown }
  /** Nothing changed. */
  | { readonly outcome: 'failed'; readonly calls: number; readonly error: unknown }

export interface RefreshOptions {
  /** The time limit of the next token request, in milliseconds. */
  timeoutMs?(): number
  /** Awaited between the two steps. If it rejects, the second step is skipped. */
  betweenSteps?(reached: RefreshState): Promise<void>
}

/**
 * The provider was busy after it had exchanged the code. The code is spent, so only a new login can succeed.
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
  /** True if the browser may get the public token (`GET /api/auth/token`). */
  readonly offersPublicToken: boolean
  /** Completes a login (contract section 5.1, step 2). Throws OAuthError, UpstreamError or LoginInterruptedError. */
  exchangeCode(grant: CodeGrant): Promise<Login>
  /** Refreshes a session (contract section 5.1, step 3.2). Never rejects. */
  refresh(state: RefreshState, options?: RefreshOptions): Promise<Refreshed>
  /**
   * Returns the tokens of a session for handlers.
   * @param now milliseconds since the epoch
   */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}
