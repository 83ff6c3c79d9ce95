import type { Context, Middleware } from 'koa'
import { isLoggedOutHere } from '../auth/logout-marks.js'
import type { Refreshes } from '../auth/refresh.js'
import type { Coordination } from '../coordination/coordination.js'
import type { Mode, Tokens } from '../modes/mode.js'
import { withOwnFields } from '../session/record.js'
import type { SessionCookie } from '../session/session-cookie.js'
import { type CookieNames, withholdCookies } from './cookies.js'
import { BusyError } from './errors.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord, writeSession } from './session.js'

/** The state of a request behind `requireTokens`. */
export interface TokensState {
  tokens: Tokens
}

export interface RequireTokensParts {
  readonly mode: Mode
  readonly refreshes: Refreshes
  readonly coordination: Coordination
  readonly sessionCookie: Pick<SessionCookie, 'names'>
  readonly cookies: CookieNames
  readonly requestLog: RequestLog
  readonly now: () => number
}

/**
 * The refresh step (contract section 5.1, step 3). It sets `ctx.state.tokens`. It answers 401 with an empty body if nobody
 * is logged in, and 503 with `Retry-After` if the session cannot be refreshed now.
 */
export function requireTokens(parts: RequireTokensParts): Middleware {
  const { mode, refreshes, coordination, sessionCookie, cookies, requestLog, now } = parts

  return async function requireTokens(ctx, next) {
    const record = sessionRecord(ctx)
    if (!record?.fields.refresh_token) return unauthorized(ctx)
    const current = await refreshes.current(record, () => requestLog(ctx))
    if (current.kind === 'loggedOut') return unauthorized(ctx)
    if (current.kind === 'ended') {
      removeSession(ctx)
      // The session cookie is missing from now on because we removed it. That must not look like a browser without cookies.
      const loginCookie = readLoginCookie(ctx, cookies)
      if (loginCookie?.succeededAt) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: undefined })
      return unauthorized(ctx)
    }
    const isRefreshed = current.record !== record
    // A kept result may come from another login that has the same refresh token, or from a version that did not store the
    // moment of login. Neither may extend this session's absolute age.
    if (isRefreshed) {
      const fields = withOwnFields(current.record.fields, record.fields)
      writeSession(ctx, { ...current.record, loggedInAt: record.loggedInAt, fields })
    }
    if (current.kind === 'unavailable') throw unavailable(current.retryAfterSeconds)
    ctx.state.tokens = mode.tokens(current.record.fields, now())
    if (!isRefreshed) return next()
    try {
      await next()
    } finally {
      // A logout may have removed the cookies while the handler was running. This response must not set them again.
      if (!ctx.headerSent && isLoggedOutHere(coordination, record.id)) {
        withholdCookies(ctx, sessionCookie.names)
        unauthorized(ctx)
      }
    }
  }
}

/** The token objects of this request. They exist only behind `requireTokens`. */
export function tokensOf(ctx: Context): Tokens {
  return ctx.state.tokens as Tokens
}

// Contract section 7: 401 and an empty body.
function unauthorized(ctx: Context): void {
  // If a handler already set JSON, Koa would send the text "null".
  ctx.remove('Content-Type')
  ctx.body = null
  ctx.status = 401
}

function unavailable(retryAfterSeconds: number): BusyError {
  const description = 'Your session could not be refreshed just now. You are still signed in.'
  return new BusyError(description, retryAfterSeconds)
}
