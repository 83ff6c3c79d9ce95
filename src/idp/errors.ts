/** The endpoints of an identity provider. Browsers alone go to the last two, and whoever checks that they are there. */
export type Endpoint = 'discovery' | 'token' | 'userinfo' | 'revocation' | 'authorization' | 'end_session'

/**
 * Whether this can be an error code of the protocol: every registered one is a few plain words. Codes go into messages and
 * logs; a token that a provider quotes in the place of one does not look like this.
 */
export function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && /^(?=.{1,64}$)[a-z]+(?:_[a-z]+)*$/.test(code)
}

/** The provider answered with an error of the protocol (RFC 6749 section 5.2). Its own text is dropped: nobody knows what it quotes. */
export class OAuthError extends Error {
  /** A registered code such as `invalid_grant`; decide by this, never by the message. */
  readonly error: string
  readonly status: number
  readonly endpoint: Endpoint
  /** From `Retry-After`, when it was given in seconds. */
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
 * - `timeout`: no whole answer within the time allowed
 * - `unreachable`: no connection, or it broke before the answer was whole
 * - `unusable`: an answer that is not what the protocol promises, server errors included
 * - `busy`: so many calls were waiting for the provider already that this one was not made
 */
export type UpstreamProblem = 'timeout' | 'unreachable' | 'unusable' | 'busy'

/** The provider could not be reached, or what it said made no sense. */
export class UpstreamError extends Error {
  readonly endpoint: Endpoint
  readonly problem: UpstreamProblem
  readonly durationMs: number
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** Why there was no connection, in Node's words (`ECONNREFUSED`, `CERT_HAS_EXPIRED`, …). */
  readonly code: string | undefined

  /** @param detail what was wrong, for the log; nothing of the request in it, and of the answer no more than an issuer's name. */
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
   * The same call may succeed later: the provider asks this application to wait (429, RFC 6585 section 4, or 503 with
   * `Retry-After`, RFC 9110 section 15.6.4), or too many calls already wait for it. The provider has not processed the
   * call, so what it carried is unspent.
   */
  get isBusy(): boolean {
    const { problem, status, retryAfterSeconds } = this
    return problem === 'busy' || status === 429 || (status === 503 && retryAfterSeconds !== undefined)
  }

  /** The provider turned this server down: a wrong secret, say, told in HTML. No waiting mends that, the operator must. */
  get isRefusal(): boolean {
    const { status = 0 } = this
    return status >= 400 && status < 500 && status !== 408 && status !== 429
  }
}

/**
 * A token response that cannot be used. The refresh token in it may be the only one that still works, so it can be had
 * from this error by `rescuedRefreshToken`. It is no property of the error, so no log line can contain it.
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

/** The refresh token of the response that `error` reports, or undefined if there was none. */
export function rescuedRefreshToken(error: unknown): string | undefined {
  return error instanceof UnusableTokenSetError ? UnusableTokenSetError.refreshTokenOf(error) : undefined
}
