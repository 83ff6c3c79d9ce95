import type { Context, Middleware } from 'koa'
import type { Auth } from '../../auth.js'
import type { Tokens } from '../../modes/mode.js'
import { type CookieSession, isKeptInRedis, type SessionRecord, withOwnFields } from '../../session/record.js'
import type { SessionCookie } from '../../session/session-cookie.js'
import type { RequestLog } from '../edge/request.js'
import { accountNotAllowed, BusyError } from '../errors/http-error.js'
import { withholdCookies } from './cookies.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { currentSession, removeSession, useSession, withholdLateSession, writeSession } from './session.js'
import type { Site } from './site.js'

/** The state of a request after `requireTokens` has run. */
export interface TokensState {
  tokens: Tokens
}

export interface RequireTokensParts {
  readonly auth: Pick<Auth, 'current' | 'tokensOf' | 'isLoggedOut'>
  readonly site: Pick<Site, 'cookies'>
  readonly sessionCookie: Pick<SessionCookie, 'names'>
  readonly requestLog: RequestLog
}

/**
 * Creates the middleware in front of every route that needs tokens. It refreshes the session if necessary and sets
 * `ctx.state.tokens`. It answers 401 with an empty body if nobody is logged in, 403 if the account is not allowed any
 * more, and 503 with `Retry-After` if the session cannot be refreshed now.
 * @example router.get('/profile', session(parts), requireTokens(parts), handler)
 */
export function requireTokens({ auth, site, sessionCookie, requestLog }: RequireTokensParts): Middleware {
  const { cookies } = site

  return async function requireTokens(ctx, next) {
    const session = currentSession(ctx)
    if (!session) return unauthorized(ctx)
    const current = await auth.current(session, () => requestLog(ctx))
    if (current.kind === 'unread') throw unread(current.retryAfterSeconds)
    if (current.kind === 'ended' || current.kind === 'denied') {
      removeSession(ctx)
      withholdLateSession(ctx)
      forgetSuccess(ctx)
    }
    if (current.kind === 'denied') throw accountNotAllowed()
    // The browser may already have a newer cookie than this request, so an old cookie is not removed.
    if (!('record' in current)) return unauthorized(ctx)
    const isNew = apply(ctx, session, current.record)
    withholdLateSession(ctx)
    if (current.kind === 'unavailable') throw unavailable(current.retryAfterSeconds)
    ctx.state.tokens = auth.tokensOf(current.record)
    if (!isNew) return next()
    try {
      await next()
    } finally {
      // A logout may have removed the cookies while the handler was running. This response must not set them again.
      if (!ctx.headerSent && auth.isLoggedOut(session.id)) {
        withholdCookies(ctx, sessionCookie.names)
        unauthorized(ctx)
      }
      if (!ctx.headerSent) withholdLateSession(ctx)
    }
  }

  /** Makes `record` the session of this request. Sets the cookie and returns true if the browser needs a new cookie. */
  function apply(ctx: Context, session: CookieSession, record: SessionRecord): boolean {
    if (isKeptInRedis(session)) {
      const isNew = record.rev !== session.rev
      if (isNew) writeSession(ctx, record)
      else useSession(ctx, record)
      return isNew
    }
    const isNew = record !== session
    if (isNew) writeSession(ctx, { ...record, fields: withOwnFields(record.fields, session.fields) })
    return isNew
  }

  // The server itself has removed the session cookie. If `succeededAt` stayed in the login cookie, the next login would
  // conclude that the browser does not keep cookies.
  function forgetSuccess(ctx: Context): void {
    const loginCookie = readLoginCookie(ctx, cookies)
    if (loginCookie?.succeededAt) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: undefined })
  }
}

/** Returns the tokens of this request. Call it only after `requireTokens` has run. */
export function tokensOf(ctx: Context): Tokens {
  return ctx.state.tokens as Tokens
}

// Service contract, section 7: 401 with an empty body.
function unauthorized(ctx: Context): void {
  // If a handler already set JSON, Koa would send the text "null".
  ctx.remove('Content-Type')
  ctx.body = null
  ctx.status = 401
}

function unread(retryAfterSeconds: number): BusyError {
  const description = 'Your session could not be read just now. You are still signed in.'
  return new BusyError({ description, retryAfterSeconds })
}

function unavailable(retryAfterSeconds: number): BusyError {
  const description = 'Your session could not be refreshed just now. You are still signed in.'
  return new BusyError({ description, retryAfterSeconds })
}
