/** What differs between one token per session and two; the rest of the server does not know which mode it runs in. */
import type { UserInfo } from '../idp/client.js'
import type { UpstreamError } from '../idp/errors.js'
import type { SessionFields } from '../session/record.js'

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
}

/**
 * - `complete`: every token is new
 * - `partial`: the first of two refreshes succeeded; `fields` hold what it brought, which is all that still works
 * - `failed`: nothing changed
 */
export type Refreshed =
  | { readonly outcome: 'complete'; readonly fields: SessionFields; readonly calls: number }
  | { readonly outcome: 'partial'; readonly fields: SessionFields; readonly calls: number; readonly error: unknown }
  | { readonly outcome: 'failed'; readonly calls: number; readonly error: unknown }

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
  redeem(grant: CodeGrant): Promise<SessionFields>
  /**
   * Contract section 5.1, step 3.2.
   * @param halfway is told what the first of two refreshes brought, and waited for before the second begins
   */
  refresh(fields: SessionFields, halfway?: (fields: SessionFields) => Promise<void>): Promise<Refreshed>
  /** Token objects for handlers; `now` in milliseconds. */
  tokens(fields: SessionFields, now: number): Tokens
  displayName(userInfo: UserInfo): string
}
