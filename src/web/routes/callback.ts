import type { Context, Middleware } from 'koa'
import { failureReasonOf } from '../../base/failure-reasons.js'
import { sessionHash } from '../../cookie/session-record.js'
import { denialFields } from '../../login/access.js'
import type { AuthorizationResponse, CompletedLogin } from '../../login/complete-login.js'
import { safeReturnTo } from '../../login/safe-return-to.js'
import { isErrorCode } from '../../provider/meaning.js'
import { isExpiredLoginPage } from '../../provider/quirks.js'
import { invalidRequest } from '../errors/http-error.js'
import { failedLogin } from '../errors/login-error.js'
import { rejectionOf } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { notesOf, requestLog } from '../request/request.js'
import { createAcceptedReturn, publicPathOf, redirect, restartUrl } from '../request/returning.js'
import { type LoginCookie, openSession, readLoginCookie, writeLoginCookie, writeSession } from '../request/session.js'

/**
 * `GET /api/auth/callback` completes a login after the identity provider has redirected the browser here (docs/reference/contract.md,
 * section 5.1, step 2).
 */
export function callback(services: Services): Middleware {
  const { completeLogin, site, metrics, log } = services
  const { cookies, homePath, loginPath } = site
  const acceptedReturn = createAcceptedReturn(services)

  return async function callback(ctx) {
    let completed: CompletedLogin | undefined
    const query = new URLSearchParams(ctx.querystring)
    try {
      const response = parseAuthorizationResponse(query)
      const loginCookie = readLoginCookie(ctx, cookies)
      const { browserId } = loginCookie ?? {}
      const request = { methods: [ctx.method], headers: ctx.req.headers }
      const isNavigation = rejectionOf(request, 'login', { publicOrigin: site.origin }) === undefined
      const session = openSession(ctx, services)
      completed = await completeLogin({ response, browserId, session, isNavigation })
      if (completed.kind !== 'foreign') notesOf(ctx).login = completed
      redirect(ctx, applyToResponse(ctx, completed, loginCookie))
      // The browser must not send the code to the page.
      if (completed.kind === 'notNeeded') ctx.status = 303
    } catch (error) {
      const reason = failureReasonOf(error)
      const access = completed?.kind === 'denied' ? denialFields(completed.denial) : {}
      const error_code = completed?.kind === 'codeRejected' ? completed.error : errorCodeIn(query)
      const seen = completed?.kind === 'otherIssuer' ? { iss: query.get('iss') ?? 'missing' } : access
      metrics.count('callbacks_total', { outcome: reason })
      requestLog(ctx, log).warn({ event: 'login_failed', reason, error_code, ...seen }, 'login failed')
      throw error
    }
  }

  /** Sets the cookies of a successful login and returns the URL to redirect to. Throws if the login failed. */
  function applyToResponse(ctx: Context, completed: CompletedLogin, loginCookie: LoginCookie | undefined): string {
    switch (completed.kind) {
      case 'signedIn': {
        const { session, sealed, succeededAt, isRepeated, scopesMissing, returnTo } = completed
        writeSession(ctx, session, sealed)
        if (loginCookie) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt })
        const fields = { session: sessionHash(session.id) }
        requestLog(ctx, log).info({ event: 'login_succeeded', ...fields }, 'login succeeded')
        if (scopesMissing.length > 0) {
          const missing = { event: 'scopes_missing', ...fields, scopes: scopesMissing.join(' ') }
          requestLog(ctx, log).warn(missing, 'the identity provider did not grant all requested scopes')
        }
        metrics.count('callbacks_total', { outcome: isRepeated ? 'repeated' : 'succeeded' })
        return publicPathOf(returnTo, homePath)
      }
      case 'restart': {
        const { why, prompt, returnTo } = completed
        requestLog(ctx, log).info({ event: 'login_restarted', reason: REASONS[why] }, 'starting the login again')
        metrics.count('callbacks_total', { outcome: 'restarted' })
        // Not to the provider: another tab may have set the login cookie since the browser sent this request.
        return restartUrl(loginPath, returnTo, prompt)
      }
      case 'notNeeded':
        requestLog(ctx, log).info(
          { event: 'login_not_needed', reason: REASONS[completed.why] },
          'the login cannot be completed, but the browser is signed in'
        )
        metrics.count('callbacks_total', { outcome: 'repeated' })
        // The login may have begun before a change of the settings.
        return publicPathOf(acceptedReturn(ctx, safeReturnTo(completed.returnTo)), homePath)
      case 'kept':
        metrics.count('callbacks_total', { outcome: 'repeated' })
        return publicPathOf(completed.returnTo, homePath)
      case 'failed':
        throw completed.error
      default:
        throw failedLogin(completed, site)
    }
  }
}

/** Why a login could not be completed as it began, for the log. */
const REASONS = {
  unbound: 'login_cookie_missing',
  otherBrowser: 'state_mismatch',
  expired: 'login_expired',
  pageExpired: 'temporarily_unavailable'
} as const

const PARAMETERS = ['code', 'state', 'error', 'error_description', 'error_uri', 'iss']
// The longest `state` of this server has about 3,000 characters. Codes may be longer (Azure AD B2C), up to the limit of the headers.
const MAX_LENGTH = 4096
const PRINTABLE = /^[ -~]+$/

/**
 * Parses the parameters of the callback. Ignores parameters that the protocol does not define. Throws HttpError 400 if
 * the response is malformed.
 */
function parseAuthorizationResponse(query: URLSearchParams): AuthorizationResponse {
  const repeated = PARAMETERS.find(name => query.getAll(name).length > 1)
  if (repeated) throw invalidRequest(`The parameter ${repeated} must not be repeated.`)
  const state = parameter(query, 'state')
  if (state === undefined) throw invalidRequest('The parameter state is missing.')
  const [code, iss, error] = [parameter(query, 'code'), parameter(query, 'iss'), errorCodeIn(query)]
  if (code !== undefined && error === undefined) return { kind: 'code', state, iss, code }
  if (error !== undefined && code === undefined) {
    return { kind: 'error', state, iss, error, isExpired: isExpiredLoginPage(error, query.get('error_description')) }
  }
  throw invalidRequest('Exactly one of the parameters code and error is required.')
}

/** Returns the error of the provider, or a code of ours if the provider's does not have the form of a code. */
function errorCodeIn(query: URLSearchParams): string | undefined {
  const error = query.get('error') || undefined
  return error === undefined || isErrorCode(error) ? error : 'unregistered_error'
}

function parameter(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  if (value === null || value === '') return undefined
  if ((name !== 'code' && value.length > MAX_LENGTH) || !PRINTABLE.test(value))
    throw invalidRequest(`The parameter ${name} is malformed.`)
  return value
}
