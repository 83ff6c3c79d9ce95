import type { Context, Middleware } from 'koa'
import { type CookieSession, hasTokens, isKeptInRedis, withCustomFields } from '../../cookie/session-record.js'
import type { Tokens } from '../../login/mode.js'
import { PROBLEM_REASONS } from '../../login/refresh-report.js'
import type { Current } from '../../sessions/index.js'
import { HttpError } from '../errors/http-error.js'
import { checkOrigin } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { opensDocument } from '../request/navigation.js'
import { requestLog } from '../request/request.js'
import {
  openSession,
  readLoginCookie,
  removeSession,
  useSession,
  withholdCookies,
  writeLoginCookie,
  writeSession
} from '../request/session.js'
import { refusalOf } from '../request/session-refusal.js'
import { mayBeExecuted, setSessionStatus, setSessionUser } from '../request/session-status.js'

/** The state of a request after `requireTokens` has run. */
export interface TokensState {
  tokens: Tokens
  /** Aborts when the session is over. Only custom routes have it. */
  readonly sessionSignal: AbortSignal
}

/**
 * Creates the middleware that runs before every route that needs tokens. It refreshes the session if necessary and sets
 * `ctx.state.tokens`. Without a session, it responds with 401 and an empty body, or with the sign-in page in a tab. If the account
 * is no longer allowed, it responds with 403. If the session cannot be refreshed now, it responds with 503 and `Retry-After`.
 * @example router.get('/profile', createRequireTokens(services), handler)
 */
export function createRequireTokens(services: Services): Middleware {
  const { refreshes, mode, sessions, site, sessionCookie, sessionUser, log } = services
  const { cookies } = site

  return async function requireTokens(ctx, next) {
    const session = openSession(ctx, services)
    if (!session) return unauthorized(ctx)
    setSessionStatus(ctx, 'retry')
    const current = await refreshes.current(session, () => requestLog(ctx, log))
    const isNew = updateCookie(ctx, session, current)
    if (current.kind !== 'live') return refuse(ctx, current)
    setSessionUser(ctx, sessionUser(current.record))
    ctx.state.tokens = mode.tokens(current.record.fields, sessions.now())
    if (!isNew) return next()
    try {
      await next()
    } finally {
      // A logout may have removed the cookies while the handler was running. This response must not set them again.
      if (!ctx.headerSent && sessions.known(session.id).kind === 'over') {
        withholdCookies(ctx, sessionCookie.names)
        unauthorized(ctx)
      }
    }
  }

  function refuse(ctx: Context, current: Exclude<Current, { readonly kind: 'live' }>): void {
    const refusal = refusalOf(current, sessions.now())
    if (refusal.status === 503) {
      const { retryAfterSeconds, mayBeOver, withoutTokensSeconds, why } = refusal
      // If the provider has failed or refused the token, the line of the refresh has the reason.
      const reason = why === 'provider' || why === 'refused' ? undefined : PROBLEM_REASONS[why]
      const state = mayBeOver ? 'It may have ended.' : 'You are still signed in.'
      const description = `Your session could not be refreshed just now. ${state}`
      const retry = { afterSeconds: retryAfterSeconds, mayBeOver, withoutTokensSeconds }
      throw new HttpError('temporarily_unavailable', { description, retry, reason })
    }
    if (refusal.clearsCookies) {
      removeSession(ctx)
      forgetSuccess(ctx)
    }
    if (refusal.status === 403) throw new HttpError('account_not_allowed')
    unauthorized(ctx)
  }

  /**
   * Makes the newest record the session of this request. Sets the cookie and returns true if the browser needs a new cookie. A
   * cookie that refers to a session in Redis gets a revision only after Redis has confirmed it.
   */
  function updateCookie(ctx: Context, session: CookieSession, current: Current): boolean {
    if (current.kind === 'over' || !current.record) return false
    const { record, isUnsaved } = current
    if (record.rev === session.rev || (isKeptInRedis(record) && isUnsaved)) {
      // If the cookie has the same revision, its session stays in use, because a handler may have added fields to it.
      useSession(ctx, hasTokens(session) ? session : record)
      return false
    }
    const fields = hasTokens(session) ? withCustomFields(record.fields, session.fields) : record.fields
    writeSession(ctx, { ...record, fields })
    return true
  }

  // Call this function when the server itself removes the session cookie. If `succeededAt` stayed in the login cookie,
  // the next login would conclude that the browser does not keep cookies.
  function forgetSuccess(ctx: Context): void {
    const loginCookie = readLoginCookie(ctx, cookies)
    if (loginCookie?.succeededAt) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: undefined })
  }
}

/**
 * Creates the middleware that protects what may be a page of the operator: a custom route or a static file. Links from other sites
 * are accepted.
 */
export function protectWithSession(services: Services): Middleware {
  const publicOrigin = services.site.origin
  const refreshSession = createRequireTokens(services)

  return function protectWithSession(ctx, next) {
    // The response is for one user, so no shared cache may store it. A custom route may change these headers.
    ctx.set('Cache-Control', 'private, no-store')
    ctx.vary('Cookie')
    checkOrigin(ctx, 'customRoute', { publicOrigin })
    return refreshSession(ctx, () => {
      mayBeExecuted(ctx)
      return next()
    })
  }
}

/** Returns the tokens of this request. Call it only after `requireTokens` has run. */
export function tokensOf(ctx: Context): Tokens {
  return ctx.state.tokens as Tokens
}

/**
 * Responds with 401. A script gets an empty body (docs/reference/contract.md, section 7).
 * @throws HttpError if a user opens the URL in a tab, so that the user gets a page with a link to the login
 */
export function unauthorized(ctx: Context): void {
  setSessionStatus(ctx, 'signed-out')
  if (opensDocument(ctx.method, ctx.req.headers)) {
    throw new HttpError('unauthorized')
  }
  // If a handler already set the content type to JSON, Koa would send the string "null", so the header is removed.
  ctx.remove('Content-Type')
  ctx.body = null
  ctx.status = 401
}
