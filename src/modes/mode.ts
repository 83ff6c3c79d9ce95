/** The differences between one token per session and two. The rest of the server does not know which mode it runs in. */
import type { UserInfo } from '../idp/client.js'
import type { UpstreamError } from '../idp/errors.js'
import type { SessionFields, SessionRecord } from '../session/record.js'

/** Contract section 2.3. */
export interface TokenObject {
  readonly access_token: string
  /** Whole seconds left, at the time of the request. */
  readonly expires_in: number
}

export interface Tokens {
  readonly internal: TokenObject
  /** In single mode the same as `internal`. */
  readonly public: TokenObject
}

export interface CodeGrant {
  readonly code: string
  readonly codeVerifier: string
  readonly nonce: string
  /** The time limit of the token request, in milliseconds; that of the transport unless given. */
  readonly timeoutMs?: number
}

/** The part of a session that comes from the provider. */
export type Login = Pick<SessionRecord, 'fields' | 'identity'>

/** A session that is to be refreshed, or a refresh that is half done. */
export interface RefreshState extends Login {
  /**
   * Dual mode: the first step has been done. Its internal token expires at this time, in milliseconds since the epoch, and
   * until then only the second step is missing.
   */
  readonly internalExpiresAt?: number
}

/** `calls` counts the token requests that were made. */
export type Refreshed =
  /** Every token is new. */
  | { readonly outcome: 'complete'; readonly fields: SessionFields; readonly calls: number }
  /** The refresh token was replaced, but not every token is new. Only `state` still works. */
  | { readonly outcome: 'partial'; readonly state: RefreshState; readonly calls: number; readonly error: unknown }
  /** Nothing changed. */
  | { readonly outcome: 'failed'; readonly calls: number; readonly error: unknown }

export interface RefreshOptions {
  /** The time limit of the next token request, in milliseconds. */
  timeoutMs?(): number
  /** Awaited between the first and the second step. The second step is not made if it rejects. */
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
  /** Asked for at login, space-separated. */
  readonly loginScope: string
  /** Whether the browser may have the public token (`GET /api/auth/token`). */
  readonly offersPublicToken: boolean
  /** Contract section 5.1, step 2. Throws OAuthError, UpstreamError or LoginInterruptedError. */
  exchangeCode(grant: CodeGrant): Promise<Login>
  /** Contract section 5.1, step 3.2. Never rejects. */
  refresh(state: RefreshState, options?: RefreshOptions): Promise<Refreshed>
  /** Token objects for handlers; `now` in milliseconds. */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}
