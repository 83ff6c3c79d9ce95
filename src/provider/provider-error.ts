import { type FailureReason, KnownError } from '../base/failure-reasons.js'
import { isAboutClient, isTemporaryCode, type Meaning, meaningOf } from './meaning.js'

/**
 * The endpoints of an identity provider. The server redirects browsers to the last two. Only the command `check` sends
 * requests to these two endpoints.
 */
export type Endpoint = 'discovery' | 'token' | 'userinfo' | 'revocation' | 'jwks' | 'authorization' | 'end_session'

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
  override readonly name: string = 'ProviderError'
  override readonly reason: FailureReason
  readonly endpoint: Endpoint
  readonly problem: ProviderProblem
  readonly durationMs: number
  readonly status: number | undefined
  /** The value of `Retry-After`, if the provider sent it. */
  readonly retryAfterSeconds: number | undefined
  /** Node's code for a failed connection (`ECONNREFUSED`, `CERT_HAS_EXPIRED`, …). */
  readonly code: string | undefined
  /** What the error means for a refresh token. */
  readonly meaning: Meaning
  // Private, so that the log cannot contain it.
  readonly #refreshToken: string | undefined

  /**
   * Creates the error.
   * @param detail the reason, for the log. It must not quote the request or the response, because they contain secrets.
   *   The URL of an issuer is not a secret.
   * @param options.refreshToken the refresh token of a token response that cannot be used. The error keeps it, because the
   *   provider may have invalidated the earlier one.
   */
  constructor(endpoint: Endpoint, problem: ProviderProblem, detail: string, options: ProviderErrorOptions = {}) {
    super(`the identity provider's ${endpoint} endpoint: ${detail}`)
    this.endpoint = endpoint
    this.problem = problem
    this.durationMs = options.durationMs ?? 0
    this.status = options.status
    this.retryAfterSeconds = options.retryAfterSeconds
    this.code = options.code
    this.meaning = options.meaning ?? 'failure'
    this.#refreshToken = options.refreshToken
    this.reason = options.reason ?? REASONS[problem] ?? this.#reasonOfResponse()
  }

  #reasonOfResponse(): FailureReason {
    if (this.isThrottled) return 'provider_throttled'
    return this.isRejection ? 'provider_refused' : 'provider_invalid_response'
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

  /** Returns the refresh token of an unusable token response. Returns undefined if there is none, or for any other error. */
  static refreshTokenOf(error: unknown): string | undefined {
    return error instanceof ProviderError ? error.#refreshToken : undefined
  }
}

interface ProviderErrorOptions
  extends Partial<Pick<ProviderError, 'durationMs' | 'status' | 'retryAfterSeconds' | 'code' | 'meaning' | 'reason'>> {
  readonly refreshToken?: string | undefined
}

/**
 * The provider responded with an OAuth error code (RFC 6749 section 5.2). The error does not contain
 * `error_description`, because it may quote a secret.
 */
export class OAuthError extends ProviderError {
  override readonly name = 'OAuthError'
  declare readonly status: number
  /** The error code, for example `invalid_grant`. */
  readonly error: string
  /** The code of a gateway that `error` replaces, for example `AUTH-001`. */
  readonly gatewayCode: string | undefined

  constructor({ error, status, endpoint, retryAfterSeconds, gatewayCode }: OAuthErrorOptions) {
    super(endpoint, 'invalid_response', `it responded with ${status} ${error}`, {
      status,
      retryAfterSeconds,
      meaning: meaningOf({ status, json: { error } }),
      reason: isAboutClient({ error }) ? 'client_rejected' : 'provider_refused'
    })
    this.error = error
    this.gatewayCode = gatewayCode
  }

  /** True unless the code says that the same request may succeed later. */
  override get isRejection(): boolean {
    return !isTemporaryCode(this.error)
  }
}

type OAuthErrorOptions = Pick<OAuthError, 'error' | 'status' | 'endpoint'> &
  Partial<Pick<OAuthError, 'retryAfterSeconds' | 'gatewayCode'>>

/**
 * The errors of token responses that arrived and cannot be used:
 * - `consent_required`: none of the scopes that the login requested were granted, because the user has not consented
 * - `identity_mismatch`: the response to a refresh names another user or issuer than the login. The session must end
 * - `scope_refused`: the provider refused a refresh that named scopes, with a code that may be about these scopes. The same request
 *   without `scope`, which means the scopes of the login (RFC 6749 section 6), may succeed
 */
export function unusableTokens(detail: string, options?: ProviderErrorOptions): ProviderError {
  return new ProviderError('token', 'invalid_response', detail, options)
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

/** True if the user info endpoint does not accept the access token. Unlike an outage, this refusal is permanent. */
export function isRefusedByUserInfo(error: unknown): boolean {
  if (!(error instanceof ProviderError) || error.endpoint !== 'userinfo') return false
  return error.status === 401 || error.status === 403
}
