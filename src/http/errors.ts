import type { Context, Middleware } from 'koa'
import { callbackPath } from '../config/addresses.js'
import { CoordinationError } from '../coordination/coordination.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import { errorPage, type LoginLoopDiagnosis, loginLoopPage, pageSecurityPolicy } from '../pages/index.js'
import { SessionTooLargeError } from '../session/session-cookie.js'
import { isLogged, type RequestLog, requestId } from './request.js'
import { returnToOf, signInAddress } from './return-path.js'

/** An error response. All its texts are shown to the client, so they hold no internals. */
export class HttpError extends Error {
  readonly status: number
  /** A registered OAuth error code where one fits. */
  readonly error: string
  readonly headers: Readonly<Record<string, string>>
  /** The likely reasons why a cookie did not come back, if that is the error. */
  readonly diagnosis: LoginLoopDiagnosis | undefined

  constructor(
    status: number,
    error: string,
    description: string,
    headers: Readonly<Record<string, string>> = {},
    diagnosis?: LoginLoopDiagnosis
  ) {
    super(description)
    this.name = 'HttpError'
    this.status = status
    this.error = error
    this.headers = headers
    this.diagnosis = diagnosis
  }
}

/**
 * An error 503, or 504 if another server is slow, with `Retry-After` (RFC 9110 section 10.2.3). It is for GET requests
 * that may succeed when they are repeated. The page that a person sees repeats the request by itself.
 */
export class BusyError extends HttpError {
  readonly retryAfterSeconds: number
  /** Address of the next attempt; undefined repeats the same request. */
  readonly retryPath: string | undefined

  constructor(description: string, retryAfterSeconds: number, { status = 503, retryPath, cause }: BusyOptions = {}) {
    super(status, 'temporarily_unavailable', description, { 'Retry-After': String(retryAfterSeconds) })
    this.name = 'BusyError'
    this.retryAfterSeconds = retryAfterSeconds
    this.retryPath = retryPath
    this.cause = cause
  }
}

interface BusyOptions {
  readonly status?: 503 | 504
  readonly retryPath?: string | undefined
  readonly cause?: Error
}

export interface ErrorParts {
  readonly requestLog: RequestLog
  /** Public path of the start page. */
  readonly homePath: string
  /** Public path of the login route. */
  readonly signInPath: string
  /** The same path if there is a start page, which the pages then offer. */
  readonly startPagePath: string | undefined
  /** True if every request has a log line. */
  readonly logsRequests: boolean
  /** The absolute address of the start page, derived from the callback URL. */
  readonly homeUrl: string
}

/**
 * The outermost layer. It alone turns errors into responses and logs them once. It writes the response itself, because
 * Koa's own handler would drop the Set-Cookie of a session that was refreshed before something else failed.
 */
export function errors(parts: ErrorParts): Middleware {
  const { requestLog, homePath, startPagePath, signInPath, homeUrl, logsRequests } = parts

  return async function errors(ctx, next) {
    try {
      await next()
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false) throw notFound(ctx)
    } catch (error) {
      const answer = answerTo(error, ctx)
      if (answer.status >= 500) logFault(error, answer, ctx)
      const isUnreachable = error instanceof UpstreamError && error.problem === 'unreachable'
      send(ctx, answer, isUnreachable)
    }
  }

  function logFault(error: unknown, answer: HttpError, ctx: Context) {
    const log = requestLog(ctx)
    // The cause is the provider's failure, which names the endpoint and the status.
    const err = error instanceof BusyError ? (error.cause ?? error) : error
    const fields = { event: 'request_failed', status: answer.status, error: answer.error, err }
    // A short outage of the provider is not a fault of this server. A rejected client is an error that the operator
    // must fix.
    const isOurs = error instanceof HttpError || error instanceof CoordinationError
    const isTransient = isOurs || (error instanceof UpstreamError && !error.isRefusal)
    log[isTransient ? 'warn' : 'error'](fields, 'request failed')
  }

  function send(ctx: Context, answer: HttpError, isUnreachable: boolean) {
    const { status, error, message: description, headers, diagnosis } = answer
    const retry = ctx.method === 'GET' && answer instanceof BusyError ? answer : undefined
    const id = requestId(ctx)
    ctx.status = status
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', 'X-Request-Id': id, ...headers })
    ctx.vary('Accept')
    for (const name of CONTENT_HEADERS) ctx.remove(name)
    if (ctx.accepts('json', 'html') === 'html') {
      ctx.set({ 'Content-Security-Policy': pageSecurityPolicy, 'Referrer-Policy': 'no-referrer' })
      if (retry) ctx.set('Refresh', refreshHeader(retry))
      ctx.type = 'html'
      // An id that no log line has would send people and operators on a search in vain.
      const quotedId = logsRequests || isLogged(ctx) ? id : undefined
      const shared = { requestId: quotedId, signInPath: signInAddress(signInPath, returnToOf(ctx, homePath)) }
      const inLogin = ctx.path === callbackPath
      const retryAfterSeconds = retry?.retryAfterSeconds
      ctx.body = diagnosis
        ? loginLoopPage({ ...diagnosis, ...shared, applicationUrl: homeUrl })
        : errorPage({
            ...shared,
            homePath: startPagePath,
            status,
            error,
            description,
            inLogin,
            isUnreachable,
            retryAfterSeconds
          })
    } else {
      ctx.body = { error, error_description: description, request_id: id }
    }
    ctx.status = status
  }
}

// Headers that describe the content of the failed response (RFC 9110 section 8). Koa corrects Content-Length itself.
const CONTENT_HEADERS = ['Content-Type', 'Content-Encoding', 'Content-Disposition', 'ETag', 'Last-Modified']

function notFound(ctx: Context): HttpError {
  return ctx.method === 'GET' || ctx.method === 'HEAD'
    ? new HttpError(404, 'not_found', 'There is nothing at this address.')
    : methodNotAllowed('GET, HEAD')
}

export function methodNotAllowed(allow: string): HttpError {
  return new HttpError(405, 'method_not_allowed', `This address answers ${allow} only.`, { Allow: allow })
}

function answerTo(error: unknown, ctx: Context): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof UpstreamError || error instanceof OAuthError) return providerFailure(error)
  if (error instanceof CoordinationError) {
    return new BusyError('This server cannot handle the request at the moment.', error.retryAfterSeconds)
  }
  if (error instanceof SessionTooLargeError) {
    const description = 'The tokens of this login do not fit the cookies a browser keeps.'
    return new HttpError(500, 'session_too_large', description)
  }
  // ctx.throw() in a program's own routes, and Koa itself, throw such errors. `expose` means that the message may be
  // shown.
  const { status, expose, message } = (error ?? {}) as { status?: unknown; expose?: unknown; message?: unknown }
  if (status === 404) return notFound(ctx)
  if (expose === true && typeof status === 'number' && status >= 400 && status < 500) {
    return new HttpError(status, errorOfStatus[status] ?? 'invalid_request', String(message))
  }
  return new HttpError(500, 'server_error', 'Something went wrong on this server.')
}

const errorOfStatus: Readonly<Record<number, string | undefined>> = { 401: 'unauthorized', 403: 'access_denied' }

/** Returns the response of a gateway (502, 503 or 504) to a failure of the provider. */
export function providerFailure(error: OAuthError | UpstreamError): HttpError {
  if (error instanceof OAuthError) {
    return new HttpError(502, 'server_error', 'The identity provider refused a request of this server.')
  }
  if (error.isBusy) return providerBusy(error)
  if (error.problem === 'unusable') {
    return new HttpError(502, 'server_error', 'The identity provider sent a response that could not be used.')
  }
  const happened = error.problem === 'unreachable' ? 'could not be reached' : 'did not answer in time'
  return new HttpError(504, 'temporarily_unavailable', `The identity provider ${happened}.`)
}

// Delays for a provider that sends no Retry-After, and for calls that were refused because the queue is full.
const DEFAULT_RETRY_SECONDS = 5
const QUEUE_RETRY_SECONDS = 2

/**
 * Returns the response for a busy provider (`error.isBusy`), with the provider's own `Retry-After`. The delay is at
 * least one second, because pages would otherwise retry without a pause.
 * @param retryPath address of the page's next attempt; the same address if undefined
 */
export function providerBusy(error: UpstreamError, retryPath?: string): BusyError {
  if (error.problem === 'busy') {
    const description = 'Too many requests wait for the identity provider.'
    return new BusyError(description, QUEUE_RETRY_SECONDS, { retryPath, cause: error })
  }
  const seconds = Math.max(1, error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS)
  return new BusyError('The identity provider is busy.', seconds, { retryPath, cause: error })
}

// The header `Refresh` is used because axe-core's accessibility check rejects a `meta` element with the same effect.
function refreshHeader({ retryAfterSeconds, retryPath }: BusyError): string {
  return retryPath === undefined ? String(retryAfterSeconds) : `${retryAfterSeconds}; url=${retryPath}`
}
