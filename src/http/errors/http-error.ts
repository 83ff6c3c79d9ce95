/** The errors that become responses. The `errors` middleware (errors.ts) sends the responses. */
import type { LoginLoopDiagnosis } from '../../pages/index.js'

interface HttpErrorOptions {
  readonly status: number
  /** A registered OAuth error code if one is suitable, otherwise a code of this server. */
  readonly error: string
  /** Shown to the client, so it must not contain internals. */
  readonly description: string
  readonly headers?: Readonly<Record<string, string>>
  /** The likely reasons, if the error is that the browser did not send back a cookie. */
  readonly diagnosis?: LoginLoopDiagnosis
  /** The original error, for the log. The response never contains it. */
  readonly cause?: unknown
}

/** An error response. */
export class HttpError extends Error {
  readonly status: number
  readonly error: string
  readonly headers: Readonly<Record<string, string>>
  readonly diagnosis: LoginLoopDiagnosis | undefined

  constructor({ status, error, description, headers = {}, diagnosis, cause }: HttpErrorOptions) {
    super(description, cause === undefined ? {} : { cause })
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.headers = headers
    this.diagnosis = diagnosis
  }
}

interface BusyErrorOptions {
  readonly description: string
  readonly retryAfterSeconds: number
  /** The default is 503. */
  readonly status?: 503 | 504
  /** The URL that the error page opens next. By default it is the URL of the failed request. */
  readonly retryPath?: string | undefined
  readonly cause?: unknown
}

/**
 * A temporary failure, with `Retry-After` (RFC 9110 section 10.2.3). The status is 503, or 504 if another server is too
 * slow. For a GET request, the error page repeats the request automatically.
 */
export class BusyError extends HttpError {
  readonly retryAfterSeconds: number
  readonly retryPath: string | undefined

  constructor({ description, retryAfterSeconds, status = 503, retryPath, cause }: BusyErrorOptions) {
    const headers = { 'Retry-After': String(retryAfterSeconds) }
    super({ status, error: 'temporarily_unavailable', description, headers, cause })
    this.name = 'BusyError'
    this.retryAfterSeconds = retryAfterSeconds
    this.retryPath = retryPath
  }
}

/** @param allow the methods that are allowed for this URL, in the form of the `Allow` header */
export function methodNotAllowed(allow: string): HttpError {
  const description = `This URL accepts ${allow} only.`
  return new HttpError({ status: 405, error: 'method_not_allowed', description, headers: { Allow: allow } })
}

export function accessDenied(description: string): HttpError {
  return new HttpError({ status: 403, error: 'access_denied', description })
}

/**
 * The error for an account that the access list does not allow. The reason is logged, but the response does not contain
 * it.
 */
export function accountNotAllowed(): HttpError {
  const description = 'This account may not sign in to this application.'
  return new HttpError({ status: 403, error: 'account_not_allowed', description })
}

export function invalidRequest(description: string): HttpError {
  return new HttpError({ status: 400, error: 'invalid_request', description })
}
