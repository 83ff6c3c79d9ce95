/**
 * The middleware that turns all errors of later middleware into responses, and logs the errors with a status of 500 or
 * more. `error-codes` is the table of the responses, and `http-error` an error with one of them. `thrown-error` decides which one an
 * error becomes, and `login-error` does so for failed logins and for the identity provider.
 */
import type { Context, Middleware } from 'koa'
import { AUTH_ROUTES, isAuthPath } from '../../config/types/urls.js'
import { readCookie } from '../../cookie/request-cookies.js'
import type { ErrorDetails } from '../../pages/index.js'
import { ProviderError, UnknownKeyError } from '../../provider/provider-error.js'
import { StoreUnavailableError } from '../../sessions/index.js'
import type { Services } from '../middleware-services.js'
import { frameOf } from '../request/navigation.js'
import { isLogged, notesOf, requestId, requestLog } from '../request/request.js'
import { returnToOf, signInUrl } from '../request/returning.js'
import { sessionRecord, setCookie } from '../request/session.js'
import { wasExecuted, wasNotExecuted } from '../request/session-status.js'
import { HttpError, methodNotAllowed, type Retry } from './http-error.js'
import { httpErrorOf } from './thrown-error.js'

/**
 * Creates the middleware. It writes the response itself, because Koa's own error handler would drop the Set-Cookie
 * header of a session that was refreshed before the error occurred.
 * @example app.use(errors(services))
 */
export function errors(services: Services): Middleware {
  const { config, site, sessions, pages, log } = services
  const { homePath, homeUrl, hasStartPage, loginPath } = site

  return async function errors(ctx, next) {
    try {
      await next()
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false) {
        throw ctx.method === 'GET' || ctx.method === 'HEAD' ? new HttpError('not_found') : methodNotAllowed('GET, HEAD')
      }
    } catch (error) {
      const httpError = httpErrorOf(error, wasExecuted(ctx))
      notesOf(ctx).error = httpError
      if (httpError.status >= 500 && !httpError.isReported) logFault(error, httpError, ctx)
      else if (log.isLevelEnabled('debug')) {
        requestLog(ctx, log).debug({ event: 'request_rejected', ...fieldsOf(ctx, httpError) }, httpError.message)
      }
      send(ctx, httpError)
    }
  }

  function logFault(error: unknown, httpError: HttpError, ctx: Context) {
    // The cause of an HttpError, if there is one, is the error of the provider or of the API, with the endpoint and the status.
    const err = error instanceof HttpError ? (error.cause ?? error) : error
    const fields = { event: 'request_failed', ...fieldsOf(ctx, httpError), executed: wasExecuted(ctx), err }
    // Failures that may be temporary, such as a short outage of the provider, are logged as warnings. All other
    // failures are logged as errors, because the operator must fix something.
    const isOurs =
      error instanceof HttpError || error instanceof UnknownKeyError || error instanceof StoreUnavailableError
    const isTransient = isOurs || (error instanceof ProviderError && !error.isRejection)
    requestLog(ctx, log)[isTransient ? 'warn' : 'error'](fields, 'request failed')
  }

  function send(ctx: Context, httpError: HttpError) {
    const { status, error, message, headers } = httpError
    ctx.status = status
    ctx.set({ ...headers, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    ctx.vary('Accept')
    for (const name of CONTENT_HEADERS) ctx.remove(name)
    if (ctx.accepts('json', 'html') === 'html') sendPage(ctx, httpError)
    else ctx.body = { error, error_description: message, request_id: requestId(ctx) }
  }

  function sendPage(ctx: Context, httpError: HttpError) {
    const { status, error, message: description, diagnosis, refusal, retry } = httpError
    const canOpenAgain = ctx.method === 'GET'
    const frame = frameOf(ctx.req.headers)
    const inLogin = ctx.path === AUTH_ROUTES.callback
    const language = pages.languageFor(ctx.acceptsLanguages())
    ctx.vary('Accept-Language')
    const policy = frame === 'other' ? pages.policyInFrame : pages.securityPolicy
    ctx.set({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' })
    ctx.type = 'html'
    // Show the request id only if a log line contains it. Otherwise the operator could not find anything by this id.
    const quotedId = config.log.requests || isLogged(ctx) ? requestId(ctx) : undefined
    const returnTo = returnToOf(ctx, services)
    const shared = { requestId: quotedId, signInPath: signInUrl(loginPath, returnTo, nextPrompt(ctx, httpError)) }
    const details = {
      ...shared,
      homePath: hasStartPage ? homePath : undefined,
      status,
      error,
      description,
      inLogin,
      refusal,
      canOpenAgain,
      // The routes under /api/auth accept no HEAD.
      asksWith: isAuthPath(ctx.path) ? ('GET' as const) : ('HEAD' as const),
      form: canOpenAgain ? undefined : formOf(ctx, httpError),
      formPath: returnTo === '/' ? undefined : returnTo,
      frame,
      // The page offers to open the URL again only after a GET. After a POST, opening the URL would not send the form
      // again.
      isSignedIn: canOpenAgain && !inLogin && sessionRecord(ctx) !== undefined,
      ...(canOpenAgain && retry && waitingTimes(ctx, retry)),
      mayBeOver: retry?.mayBeOver ?? false
    }
    ctx.body =
      diagnosis && frame !== 'other'
        ? pages.loginLoopPage({ ...diagnosis, ...shared, error, applicationUrl: homeUrl }, language)
        : pages.errorPage(details, language)
  }

  /**
   * Returns the prompt of the login that the page offers. Without `login`, the provider would respond to the same account in the same
   * way again, and the user could never choose another account. Unless the access list has refused the account, the operator's own
   * prompt stays, because some providers need it, except `none`, with which the provider never asks the user.
   */
  function nextPrompt(ctx: Context, { error, status }: HttpError): string | undefined {
    if (REFUSED_BY_ACCESS_LIST.has(error)) return 'login'
    const { prompt } = notesOf(ctx).login ?? {}
    const { prompt: configured = 'none' } = config.platform.authorizationParams ?? {}
    return REFUSED_ELSEWHERE.has(`${status} ${error}`) && configured === 'none' ? (prompt ?? 'login') : prompt
  }

  /**
   * The longer the outage lasts, the later the page asks again. Only a cookie can tell since when a browser without scripts loads the page
   * again and again. It expires soon after the outage. A callback does not wait longer, because its code is soon too old.
   */
  function waitingTimes(ctx: Context, { afterSeconds, path, withoutTokensSeconds }: Retry) {
    const { outage, secure } = site.cookies
    const now = sessions.now()
    const since = Number(readCookie(ctx.get('Cookie'), outage)) || now
    setCookie(ctx, outage, String(since), 2 * MAX_INTERVAL_SECONDS, secure)
    const interval = Math.min(MAX_INTERVAL_SECONDS, Math.round((now - since) / 2000))
    const sendsCode = ctx.path === AUTH_ROUTES.callback && path === undefined
    return {
      retryAfterSeconds: sendsCode ? afterSeconds : Math.max(afterSeconds, interval),
      retryPath: path,
      ...(withoutTokensSeconds !== undefined && { signInAfterSeconds: SIGN_IN_AFTER_SECONDS - withoutTokensSeconds })
    }
  }
}

/** Returns undefined if the error itself says what became of the form. */
function formOf(ctx: Context, { status }: HttpError): ErrorDetails['form'] {
  if (wasNotExecuted(ctx)) return status === 401 || status === 503 ? 'unsent' : undefined
  return status >= 500 ? 'executed' : undefined
}

const REFUSED_BY_ACCESS_LIST = new Set(['account_not_allowed', 'insufficient_user_authentication'])
// With status 502, `provider_refused` is about this server, and not about the account.
const REFUSED_ELSEWHERE = new Set(['403 access_denied', '400 provider_refused', '502 upstream_unauthorized'])

// Headers that describe the content of the failed response (RFC 9110 section 8). Koa replaces Content-Length itself.
const CONTENT_HEADERS = ['Content-Type', 'Content-Encoding', 'Content-Disposition', 'ETag', 'Last-Modified']

/** The log of requests is off by default, so these fields tell which request failed. The query may contain secrets. */
function fieldsOf({ method, path }: Context, { status, error, reason }: HttpError) {
  return { method, path, status, error_code: error, ...(reason !== error && { reason }) }
}

// After this time without tokens, a page offers a sign-in, because a provider may refuse the refreshes of a session, but no login.
const SIGN_IN_AFTER_SECONDS = 30
const MAX_INTERVAL_SECONDS = 60
