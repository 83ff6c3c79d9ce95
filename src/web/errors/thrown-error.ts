/** Decides which response an error becomes: one of this server, of a custom route, of Koa or of a middleware package. */
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import { SessionTooLargeError } from '../../cookie/session-cookie.js'
import { ProviderError, UnknownKeyError } from '../../provider/provider-error.js'
import { StoreUnavailableError } from '../../sessions/index.js'
import { ERRORS } from './error-codes.js'
import { HttpError } from './http-error.js'
import { providerFailure } from './login-error.js'

/** @param isExecuted true if a handler or an API got the request */
export function httpErrorOf(error: unknown, isExecuted: boolean): HttpError {
  const isRetry = error instanceof StoreUnavailableError || (error instanceof HttpError && error.retry !== undefined)
  if (isExecuted && isRetry) {
    // With `retry`, the client would send the request again, and the handler would run a second time.
    const description = 'The request was executed, but this server cannot save its result at the moment.'
    return new HttpError('temporarily_unavailable', { description })
  }
  if (error instanceof HttpError) return error
  if (error instanceof ProviderError) return providerFailure(error)
  if (error instanceof StoreUnavailableError || error instanceof UnknownKeyError) {
    const retry = { afterSeconds: error.retryAfterSeconds }
    const description = 'The key of the logout token is unknown. Send the token again later.'
    return new HttpError('temporarily_unavailable', { retry, ...(error instanceof UnknownKeyError && { description }) })
  }
  if (error instanceof SessionTooLargeError) {
    const description = 'The request was executed, but its session is too large to be saved.'
    return new HttpError('session_too_large', isExecuted ? { description } : {})
  }
  return httpErrorOfThrown(error) ?? new HttpError('server_error')
}

type Thrown = Partial<Record<'status' | 'expose' | 'message' | 'headers' | 'name' | 'body', unknown>>

/**
 * Returns the response that the error asks for, or undefined if the error is a fault. Only an HTTP error may decide the status:
 * `ctx.throw()`, `ctx.assert()` and http-errors set `expose` to true or false. The error of an HTTP client such as axios has a
 * `status` too, but this is the status of a response that the handler got. As ours, a 401 would say that the user is not signed
 * in.
 */
function httpErrorOfThrown(error: unknown): HttpError | undefined {
  const { status, expose, message, headers, name, body } = (error ?? {}) as Thrown
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return undefined
  // The parsers of koa-body and koa-bodyparser (co-body) report an invalid body without `expose`. The error contains the body.
  const isInvalidBody = status === 400 && (name === 'SyntaxError' || name === 'RangeError') && typeof body === 'string'
  if (typeof expose !== 'boolean' && !isInvalidBody) return undefined
  const text = STATUS_CODES[status]
  const isShown = expose === true && message !== '' && message !== text
  const known = OF_HANDLERS.find(code => ERRORS[code][0] === status)
  const generic = status === 404 || status === 500 ? {} : { description: `${text ?? 'Bad Request'}.` }
  return new HttpError(known ?? (status < 500 ? 'invalid_request' : 'server_error'), {
    status,
    ...(isShown ? { description: String(message) } : generic),
    headers: safeHeaders(headers)
  })
}

const OF_HANDLERS = [
  ...(['unauthorized', 'forbidden', 'not_found', 'method_not_allowed', 'request_timeout', 'conflict'] as const),
  ...(['content_too_large', 'too_many_requests', 'headers_too_large', 'temporarily_unavailable'] as const)
]
// These headers describe the connection, the content or the caching of the error response, which this server decides, or they
// would change cookies.
const NEVER_SENT =
  /^(content-.*|set-cookie2?|cache-control|expires|etag|last-modified|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|session-.*)$/i

/** Returns the headers of an HTTP error that its response may have. An invalid header would make the response fail. */
function safeHeaders(headers: unknown): Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null) return {}
  const safe = Object.entries(headers).flatMap(([name, value]) => {
    if (NEVER_SENT.test(name) || (typeof value !== 'string' && typeof value !== 'number')) return []
    return isValid(name, String(value)) ? [[name, String(value)] as const] : []
  })
  return Object.fromEntries(safe)
}

function isValid(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
