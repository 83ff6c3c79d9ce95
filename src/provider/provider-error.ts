import { type FailureReason, KnownError } from '../base/failure-reasons.js'
import { isAboutClient, type Meaning, meaningOf } from './meaning.js'

/**
 * The endpoints of an identity provider. The server redirects browsers to the last two. Only the command `check` sends
 * requests to these two endpoints.
 */
export type Endpoint = 'discovery' | 'token' | 'userinfo' | 'revocation' | 'jwks' | 'authorization' | 'end_session'

/**
 * The provider responded with an OAuth error code (RFC 6749 section 5.2). The error does not contain
 * `error_description`, because it may quote a secret.
 */
export class OAuthError extends KnownError {
  /** The error code, for example `invalid_grant`. */
  readonly error: string
  readonly status: number
  readonly endpoint: Endpoint
  /** The value of `Retry-After`, if the provider sent it as a number of seconds. */
  readonly retryAfterSeconds: number | undefined
  /** The code of a gateway that `error` replaces, for example `AUTH-001`. */
  readonly gatewayCode: string | undefined
  /** What the error means for a refresh token, if the endpoint is the token endpoint. */
  readonly meaning: Meaning
  override readonly reason: FailureReason

  constructor(
    options: Pick<OAuthError, 'error' | 'status' | 'endpoint' | 'retryAfterSeconds'> &
      Partial<Pick<OAuthError, 'gatewayCode'>>
  ) {
    super(`the identity provider's ${options.endpoint} endpoint responded with ${options.status} ${options.error}`)
    this.name = 'OAuthError'
    this.error = options.error
    this.status = options.status
    this.endpoint = options.endpoint
    this.retryAfterSeconds = options.retryAfterSeconds
    this.gatewayCode = options.gatewayCode
    const json = { error: options.error }
    this.meaning = meaningOf({ status: options.status, json })
    this.reason = isAboutClient(json) ? 'client_rejected' : 'provider_refused'
  }
}

/**
 * - `timeout`: the response was not complete within the time limit
 * - `unreachable`: the connection could not be opened, or it broke before the response was complete
 * - `invalid_response`: the response has an unexpected status or violates the protocol
 * - `queue_full`: the request was not sent, because too many requests to the provider were already waiting in this process
 */
export type ProviderProblem = 'timeout' | 'unreachable' | 'invalid_response' | 'queue_full'

const REASONS: Readonly<Partial<Record<ProviderProblem, FailureReason>>> = {
  timeout: 'provider_timeout',
  unreachable: 'provider_unreachable',
  queue_full: 'queue_full'
}

/** The provider could not be reached, or its response could not be used. */
export class ProviderError extends KnownError {
  readonly endpoint: Endpoint
  readonly problem: ProviderProblem
  readonly durationMs: number
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** Node's code for a failed connection (`ECONNREFUSED`, `CERT_HAS_EXPIRED`, …). */
  readonly code: string | undefined
  /** What the error means for a refresh token. */
  readonly meaning: Meaning
  override readonly reason: FailureReason

  /**
   * Creates the error.
   * @param detail the reason, for the log. It must not quote the request or the response, because they contain secrets.
   *   The URL of an issuer is not a secret.
   */
  constructor(
    endpoint: Endpoint,
    problem: ProviderProblem,
    detail: string,
    options: Partial<Pick<ProviderError, 'durationMs' | 'status' | 'retryAfterSeconds' | 'code' | 'meaning'>> = {}
  ) {
    super(`the identity provider's ${endpoint} endpoint: ${detail}`)
    this.name = 'ProviderError'
    this.endpoint = endpoint
    this.problem = problem
    this.durationMs = options.durationMs ?? 0
    this.status = options.status
    this.retryAfterSeconds = options.retryAfterSeconds
    this.code = options.code
    this.meaning = options.meaning ?? 'failure'
    const { isThrottled, isRejection } = this
    const ofResponse = isRejection ? 'provider_refused' : 'provider_invalid_response'
    this.reason = REASONS[problem] ?? (isThrottled ? 'provider_throttled' : ofResponse)
  }

  /**
   * True if the provider has not processed the request, so the same request with the same code or token may succeed
   * later. This is the case for status 429 (RFC 6585 section 4), for status 503 with `Retry-After` (RFC 9110 section
   * 15.6.4), and for the problem `queue_full`.
   */
  get isThrottled(): boolean {
    const { problem, status, retryAfterSeconds } = this
    return problem === 'queue_full' || status === 429 || (status === 503 && retryAfterSeconds !== undefined)
  }

  /**
   * True if the provider rejected the request without an OAuth error code, for example because of a wrong client secret.
   * The same request would fail again, so the operator must correct the configuration.
   */
  get isRejection(): boolean {
    const { status = 0 } = this
    return status >= 400 && status < 500 && status !== 408 && status !== 429
  }
}

/**
 * The key of a token is unknown, and the keys of the provider were requested too recently to request them again. The same token
 * can be checked again after `retryAfterSeconds`.
 */
export class UnknownKeyError extends KnownError {
  override readonly reason = 'unknown_key'
  readonly retryAfterSeconds: number

  constructor(retryAfterSeconds: number) {
    super('the key of a token is unknown, and the keys of the identity provider were requested too recently')
    this.name = 'UnknownKeyError'
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/**
 * A token response cannot be used. If the response contains a refresh token, the error keeps it, because the provider
 * may have invalidated the earlier refresh token. The error stores the token in a private field, so the log cannot
 * contain the token.
 */
export class UnusableTokenSetError extends ProviderError {
  readonly #refreshToken: string | undefined

  constructor(detail: string, refreshToken: string | undefined) {
    super('token', 'invalid_response', detail)
    this.#refreshToken = refreshToken
  }

  static refreshTokenOf(error: UnusableTokenSetError): string | undefined {
    return error.#refreshToken
  }
}

/**
 * The response to a refresh names a different user or issuer than the response to the login did. The session must end. The error
 * does not keep the refresh token of the response, because the session must not use it.
 */
export class OtherIdentityError extends ProviderError {
  override readonly reason = 'identity_mismatch'

  constructor(detail: string) {
    super('token', 'invalid_response', detail)
    this.name = 'OtherIdentityError'
  }
}

/** The provider has issued tokens with none of the scopes that the login requested, because the user has not consented. */
export class ConsentMissingError extends ProviderError {
  override readonly reason = 'consent_required'

  constructor() {
    super('token', 'invalid_response', 'it granted none of the requested scopes')
    this.name = 'ConsentMissingError'
  }
}

/**
 * The provider refused a refresh that named scopes, with a code that may be about these scopes. The same request without `scope`
 * may succeed. It means the scopes of the login (RFC 6749 section 6).
 */
export class ScopeRefusedError extends ProviderError {
  override readonly reason = 'scope_refused'

  constructor({ status, error }: OAuthError) {
    super(
      'token',
      'invalid_response',
      `it refused a refresh that names scopes (${status} ${error}); the next request names none`
    )
    this.name = 'ScopeRefusedError'
  }
}

/**
 * Returns the refresh token of an unusable token response. Returns undefined if the response contained no refresh
 * token, or for any other error.
 */
export function rescuedRefreshToken(error: unknown): string | undefined {
  return error instanceof UnusableTokenSetError ? UnusableTokenSetError.refreshTokenOf(error) : undefined
}

/** True if the user info endpoint does not accept the access token. Unlike an outage, this refusal is permanent. */
export function isRefusedByUserInfo(error: unknown): boolean {
  if (!(error instanceof OAuthError || error instanceof ProviderError) || error.endpoint !== 'userinfo') return false
  return error.status === 401 || error.status === 403
}
