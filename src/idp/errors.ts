/** The endpoints of an identity provider. Only browsers use the last two. The `check` command tests that they exist. */
export type Endpoint = 'discovery' | 'token' | 'userinfo' | 'revocation' | 'authorization' | 'end_session'

/**
 * True if `code` can be an error code of the protocol. Every registered code consists of a few plain words. Codes
 * appear in messages and logs, so this check keeps out a token that a provider may send in place of a code.
 */
export function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && /^(?=.{1,64}$)[a-z]+(?:_[a-z]+)*$/.test(code)
}

/**
 * The provider responded with an error of the protocol (RFC 6749 section 5.2). Its description is dropped, because it
 * may quote a secret.
 */
export class OAuthError extends Error {
  /** A registered code such as `invalid_grant`. Decisions use this code and never the message. */
  readonly error: string
  readonly status: number
  readonly endpoint: Endpoint
  /** From `Retry-After`, if the provider gave it in seconds. */
  readonly retryAfterSeconds: number | undefined

  constructor(parts: Pick<OAuthError, 'error' | 'status' | 'endpoint' | 'retryAfterSeconds'>) {
    super(`the identity provider's ${parts.endpoint} endpoint answered ${parts.status} ${parts.error}`)
    this.name = 'OAuthError'
    this.error = parts.error
    this.status = parts.status
    this.endpoint = parts.endpoint
    this.retryAfterSeconds = parts.retryAfterSeconds
  }
}

/**
 * - `timeout`: no complete response within the time limit
 * - `unreachable`: no connection, or the connection broke before the response was complete
 * - `unusable`: a response that violates the protocol, or a server error
 * - `busy`: this call was not made, because too many calls were already waiting for the provider
 */
export type UpstreamProblem = 'timeout' | 'unreachable' | 'unusable' | 'busy'

/** The provider could not be reached, or its response could not be used. */
export class UpstreamError extends Error {
  readonly endpoint: Endpoint
  readonly problem: UpstreamProblem
  readonly durationMs: number
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** Node's code for a failed connection (`ECONNREFUSED`, `CERT_HAS_EXPIRED`, …). */
  readonly code: string | undefined

  /**
   * Creates the error of one call.
   * @param detail the reason, for the log; it must not contain text of the request or response, except the name of an issuer
   */
  constructor(
    endpoint: Endpoint,
    problem: UpstreamProblem,
    detail: string,
    parts: {
      durationMs?: number
      status?: number
      retryAfterSeconds?: number | undefined
      code?: string | undefined
    } = {}
  ) {
    super(`the identity provider's ${endpoint} endpoint: ${detail}`)
    this.name = 'UpstreamError'
    this.endpoint = endpoint
    this.problem = problem
    this.durationMs = parts.durationMs ?? 0
    this.status = parts.status
    this.retryAfterSeconds = parts.retryAfterSeconds
    this.code = parts.code
  }

  /**
   * True if the same call may succeed later. Either the provider asks this application to wait (429, RFC 6585 section
   * 4, or 503 with `Retry-After`, RFC 9110 section 15.6.4), or too many calls already wait for it. The provider has not
   * processed the call, so the code or token in it can still be used.
   */
  get isBusy(): boolean {
    const { problem, status, retryAfterSeconds } = this
    return problem === 'busy' || status === 429 || (status === 503 && retryAfterSeconds !== undefined)
  }

  /**
   * True if the provider refused this server, for example because of a wrong secret, without an error of the protocol.
   * The operator must fix this. A retry does not help.
   */
  get isRefusal(): boolean {
    const { status = 0 } = this
    return status >= 400 && status < 500 && status !== 408 && status !== 429
  }
}

/**
 * A token response that cannot be used. Its refresh token may be the only one that still works, so
 * `rescuedRefreshToken` returns it. It is stored in a private field, so no log line can contain it.
 */
export class UnusableTokenSetError extends UpstreamError {
  readonly #refreshToken: string | undefined

  constructor(detail: string, refreshToken: string | undefined) {
    super('token', 'unusable', detail)
    this.#refreshToken = refreshToken
  }

  static refreshTokenOf(error: UnusableTokenSetError): string | undefined {
    return error.#refreshToken
  }
}

/** Returns the refresh token of the response that `error` reports, or undefined if there was none. */
export function rescuedRefreshToken(error: unknown): string | undefined {
  return error instanceof UnusableTokenSetError ? UnusableTokenSetError.refreshTokenOf(error) : undefined
}
