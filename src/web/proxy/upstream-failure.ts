/** The error responses of the API proxy. */

import type { Context } from 'koa'
import type { Logger } from 'pino'
import { closingError, HttpError } from '../errors/http-error.js'
import { requestLog } from '../request/request.js'
import { BodyTooLargeError } from './request-body.js'
import type { FailureKind, UpstreamError } from './upstream.js'

const CODES = {
  unreachable: 'upstream_unreachable',
  invalid_response: 'upstream_invalid_response',
  timeout: 'upstream_timeout'
} as const satisfies Record<FailureKind, string>

/**
 * Returns the error for an API that cannot be reached, sends no response headers in time, or sends a response that
 * cannot be forwarded.
 */
export function upstreamError(kind: FailureKind, cause: unknown): HttpError {
  return new HttpError(CODES[kind], { cause })
}

/**
 * Returns the error for a failed request to the API. A request also fails if its body is longer than `maxBodyBytes`.
 */
export function errorOfFailure({ reason, cause }: UpstreamError, maxBodyBytes: number): HttpError {
  return cause instanceof BodyTooLargeError ? tooLarge(maxBodyBytes) : upstreamError(reason, cause)
}

/**
 * Returns the error for an API that responded with 401. The client gets 502, because a page would interpret 401 as a
 * missing login, and would start one login after another. The session is not refreshed: the token has not expired, and many APIs
 * respond with 401 if only one object is forbidden.
 */
export function upstreamUnauthorized(): HttpError {
  return new HttpError('upstream_unauthorized', { isReported: true })
}

const HOUR_MS = 3_600_000

/** Returns the function that counts the 401 responses to each rule, and writes at most one warning for each rule and hour. */
export function createUnauthorizedReport(log: Logger, now = performance.now.bind(performance)) {
  const rules = new Map<string, { readonly reportedAt: number; count: number }>()

  return function reportUnauthorized(ctx: Context, route: string): void {
    const known = rules.get(route)
    if (known && now() - known.reportedAt < HOUR_MS) {
      known.count += 1
      return
    }
    const count = (known?.count ?? 0) + 1
    rules.set(route, { reportedAt: now(), count: 0 })
    const fields = { event: 'upstream_unauthorized', route, count }
    requestLog(ctx, log).warn(fields, 'an API refused access tokens that have not expired')
  }
}

/** Returns the error for a request that was removed from the full queue of its API, or waited too long in the queue. */
export function upstreamQueueFull(): HttpError {
  const description = 'Too many requests to the API are in progress.'
  const headers = { 'Retry-After': '1' }
  return new HttpError('temporarily_unavailable', { reason: 'queue_full', description, headers })
}

/** Returns the error for a request body that is too long. */
export function tooLarge(maxBodyBytes: number): HttpError {
  return closingError(413, `The body of this request is longer than ${maxBodyBytes} bytes.`)
}

/**
 * Returns the error for a request whose body was read before the proxy ran. Without this error, the API would get an
 * empty body, or wait for the body until its time limit. Operators must fix their application, so the error is not an
 * HttpError: it is logged as an error, and the client gets 500.
 */
export function bodyAlreadyRead(): Error {
  return new Error(
    'The body of a request for a proxy rule was read before the proxy could forward it. Move the body parser behind the middleware of platform-auth-server, or let it skip the paths of apiProxy.rules.'
  )
}
