/** The errors that become responses. The `errors` middleware (error-responses.ts) sends the responses. */
import { KnownError, reasonOf } from '../../base/failure-reasons.js'
import type { LoginLoopDiagnosis, Refusal } from '../../pages/index.js'
import { ERRORS, type ErrorCode } from './error-codes.js'

export type { Refusal }

/** How the error page of a temporary failure repeats the request. */
export interface Retry {
  readonly afterSeconds: number
  /** The URL that the error page opens next. If undefined, it is the URL of the failed request. */
  readonly path?: string | undefined
  /** True if the session may be over, so the error page offers a new login. */
  readonly mayBeOver?: boolean
  /** The seconds for which the session has had no valid token, or undefined if a sign-in would not help. */
  readonly withoutTokensSeconds?: number | undefined
}

interface HttpErrorOptions
  extends Partial<Pick<HttpError, 'headers' | 'diagnosis' | 'refusal' | 'isReported' | 'retry'>> {
  /** The default is that of the code. */
  readonly status?: number
  /** Shown to the client, so it must not contain internals. The default is that of the code. */
  readonly description?: string
  /** The default is the reason of `cause`, or else the code. */
  readonly reason?: string | undefined
  /** The original error, for the log. The response never contains it. */
  readonly cause?: unknown
}

/** An error response. */
export class HttpError extends KnownError {
  override readonly name = 'HttpError'
  readonly error: ErrorCode
  readonly status: number
  /** What caused the error, for the log and the metrics. */
  override readonly reason: string
  readonly headers: Readonly<Record<string, string>>
  /** The likely reasons, if the error is that the browser did not send back a cookie. */
  readonly diagnosis: LoginLoopDiagnosis | undefined
  /** What the browser says about the request, if this is the reason for a status of 403. */
  readonly refusal: Refusal | undefined
  /** True if a log line counts errors of this kind, so that each one of them is logged only at the level debug. */
  readonly isReported: boolean
  /** Only for a temporary failure. The response has `Retry-After` then (RFC 9110 section 10.2.3). */
  readonly retry: Retry | undefined

  constructor(error: ErrorCode, options: HttpErrorOptions = {}) {
    const [status, description] = ERRORS[error]
    const { cause, retry } = options
    super(options.description ?? description, cause === undefined ? {} : { cause })
    this.error = error
    this.status = options.status ?? status
    this.reason = options.reason ?? reasonOf(cause) ?? error
    this.headers = { ...options.headers, ...(retry && { 'Retry-After': String(retry.afterSeconds) }) }
    this.diagnosis = options.diagnosis
    this.refusal = options.refusal
    this.isReported = options.isReported ?? false
    this.retry = retry
  }
}

export function invalidRequest(description: string): HttpError {
  return new HttpError('invalid_request', { description })
}

/** @param allow the methods that are allowed for this URL, in the form of the `Allow` header */
export function methodNotAllowed(allow: string, description = `This URL accepts ${allow} only.`): HttpError {
  return new HttpError('method_not_allowed', { description, headers: { Allow: allow } })
}

/** The error for a request that the server does not read to its end. Its response therefore closes the connection. */
export function closingError(status: 400 | 413 | 417, description: string): HttpError {
  const error = status === 413 ? 'content_too_large' : 'invalid_request'
  return new HttpError(error, { status, description, headers: { Connection: 'close' } })
}
