/** The errors that become responses. The `errors` middleware (error-responses.ts) sends the responses. */
import { KnownError, reasonOf } from '../../base/failure-reasons.js'
import type { LoginLoopDiagnosis, Refusal } from '../../pages/index.js'
import type { ErrorCode } from './error-codes.js'

export type { Refusal }

interface HttpErrorOptions
  extends Pick<HttpError, 'status' | 'error'>,
    Partial<Pick<HttpError, 'headers' | 'diagnosis' | 'refusal' | 'reason' | 'isReported'>> {
  /** Shown to the client, so it must not contain internals. */
  readonly description: string
  /** The original error, for the log. The response never contains it. */
  readonly cause?: unknown
}

/** An error response. */
export class HttpError extends KnownError {
  readonly status: number
  readonly error: ErrorCode
  /** What caused the error, for the log and the metrics. */
  override readonly reason: string
  readonly headers: Readonly<Record<string, string>>
  /** The likely reasons, if the error is that the browser did not send back a cookie. */
  readonly diagnosis: LoginLoopDiagnosis | undefined
  /** What the browser says about the request, if this is the reason for a status of 403. */
  readonly refusal: Refusal | undefined
  /** True if a log line counts errors of this kind, so that each one of them is logged only at the level debug. */
  readonly isReported: boolean

  constructor(options: HttpErrorOptions) {
    const { status, error, description, headers = {}, diagnosis, refusal, cause } = options
    super(description, cause === undefined ? {} : { cause })
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.reason = options.reason ?? reasonOf(cause) ?? error
    this.headers = headers
    this.diagnosis = diagnosis
    this.refusal = refusal
    this.isReported = options.isReported ?? false
  }
}

interface TemporarilyUnavailableOptions extends Pick<HttpErrorOptions, 'description' | 'cause'> {
  readonly retryAfterSeconds: number
  /** The default is 503. */
  readonly status?: 503 | 504
  readonly retryPath?: string | undefined
  readonly mayBeOver?: boolean | undefined
  readonly withoutTokensSeconds?: number | undefined
  readonly reason?: string | undefined
}

/**
 * A temporary failure, with `Retry-After` (RFC 9110 section 10.2.3). The status is 503, or 504 if another server is too
 * slow. For a GET request, the error page repeats the request automatically.
 */
export class TemporarilyUnavailableError extends HttpError {
  readonly retryAfterSeconds: number
  /** The URL that the error page opens next. If undefined, it is the URL of the failed request. */
  readonly retryPath: string | undefined
  /** True if the session may be over, so the error page offers a new login. */
  readonly mayBeOver: boolean
  /** The seconds for which the session has had no valid token, or undefined if a sign-in would not help. */
  readonly withoutTokensSeconds: number | undefined

  constructor(options: TemporarilyUnavailableOptions) {
    const { description, retryAfterSeconds, status = 503, retryPath, mayBeOver = false, cause, reason } = options
    const headers = { 'Retry-After': String(retryAfterSeconds) }
    const error = status === 504 ? 'provider_timeout' : 'temporarily_unavailable'
    super({ status, error, description, headers, cause, ...(reason !== undefined && { reason }) })
    this.name = 'TemporarilyUnavailableError'
    this.retryAfterSeconds = retryAfterSeconds
    this.retryPath = retryPath
    this.mayBeOver = mayBeOver
    this.withoutTokensSeconds = options.withoutTokensSeconds
  }
}

/** Returns the error for a URL at which there is nothing. */
export function notFound(): HttpError {
  return new HttpError({ status: 404, error: 'not_found', description: 'There is nothing at this URL.' })
}

/** @param allow the methods that are allowed for this URL, in the form of the `Allow` header */
export function methodNotAllowed(allow: string): HttpError {
  const description = `This URL accepts ${allow} only.`
  return new HttpError({ status: 405, error: 'method_not_allowed', description, headers: { Allow: allow } })
}

/**
 * The error for an account that the access list does not allow. The reason is logged, but the response does not contain
 * it.
 */
export function accountNotAllowed(): HttpError {
  const description = 'This account may not sign in to this application.'
  return new HttpError({ status: 403, error: 'account_not_allowed', description })
}

/** The error for a request that the server does not read to its end. Its response therefore closes the connection. */
export function closingError(status: 400 | 413 | 417, description: string): HttpError {
  const error = status === 413 ? 'content_too_large' : 'invalid_request'
  return new HttpError({ status, error, description, headers: { Connection: 'close' } })
}

export function invalidRequest(description: string): HttpError {
  return new HttpError({ status: 400, error: 'invalid_request', description })
}
