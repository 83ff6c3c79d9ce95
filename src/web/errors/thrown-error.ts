/** Decides which response an error of a custom route, of Koa or of a middleware package becomes. */
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { ErrorCode } from './error-codes.js'
import { HttpError } from './http-error.js'

interface Thrown {
  readonly status?: unknown
  readonly expose?: unknown
  readonly message?: unknown
  readonly headers?: unknown
  readonly name?: unknown
  readonly body?: unknown
}

/**
 * Returns the response that the error asks for, or undefined if the error is a fault. Only an HTTP error may decide the status:
 * `ctx.throw()`, `ctx.assert()` and http-errors set `expose` to true or false. The error of an HTTP client such as axios has a
 * `status` too, but this is the status of a response that the handler got. As ours, a 401 would say that the user is not signed
 * in.
 */
export function httpErrorOfThrown(error: unknown): HttpError | undefined {
  const { status, expose, message, headers, name, body } = (error ?? {}) as Thrown
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return undefined
  // The parsers of koa-body and koa-bodyparser (co-body) report an invalid body without `expose`. The error contains the body.
  const isInvalidBody = status === 400 && (name === 'SyntaxError' || name === 'RangeError') && typeof body === 'string'
  if (typeof expose !== 'boolean' && !isInvalidBody) return undefined
  const text = STATUS_CODES[status]
  const isShown = expose === true && message !== '' && message !== text
  return new HttpError({
    status,
    error: ERROR_OF_STATUS[status] ?? (status < 500 ? 'invalid_request' : 'server_error'),
    description: isShown ? String(message) : (GENERIC[status] ?? `${text ?? 'Bad Request'}.`),
    headers: safeHeaders(headers)
  })
}

const ERROR_OF_STATUS: Readonly<Record<number, ErrorCode | undefined>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  413: 'content_too_large',
  429: 'too_many_requests',
  431: 'headers_too_large',
  503: 'temporarily_unavailable'
}

const GENERIC: Readonly<Record<number, string | undefined>> = {
  404: 'There is nothing at this URL.',
  500: 'Something went wrong on this server.'
}

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
