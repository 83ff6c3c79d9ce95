import type { Context, Middleware } from 'koa'
import type { Coordination } from '../coordination/coordination.js'
import { hasEnded } from '../modes/logouts.js'
import type { Mode, Tokens } from '../modes/mode.js'
import type { Renewals } from '../modes/renewal.js'
import type { SessionRecord } from '../session/record.js'
import type { SessionCookie } from '../session/session-cookie.js'
import type { Background } from './background.js'
import { type CookieNames, withholdCookies } from './cookies.js'
import { BusyError } from './errors.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord, writeSession } from './session.js'

export interface RequireTokensParts {
  readonly mode: Mode
  readonly renewals: Renewals
  readonly coordination: Coordination
  readonly background: Background
  readonly sessionCookie: Pick<SessionCookie, 'names'>
  readonly cookies: CookieNames
  readonly requestLog: RequestLog
  readonly now: () => number
}

/**
 * The refresh step (contract section 5.1, step 3): leaves `ctx.state.tokens`, or answers 401 with an empty body when
 * nobody is logged in, or 503 when the provider could not renew the session now.
 */
export function requireTokens(parts: RequireTokensParts): Middleware {
  const { mode, renewals, coordination, background, sessionCookie, cookies, requestLog, now } = parts

  return async function requireTokens(ctx, next) {
    const record = sessionRecord(ctx)
    if (!record?.fields.refresh_token) return unauthorized(ctx)
    const current = await renewals.current(record, () => requestLog(ctx))
    if (current.kind === 'loggedOut') return unauthorized(ctx)
    if (current.kind === 'ended') {
      await removeSession(ctx)
      // Its cookie is gone because we took it back, which is no sign of a browser that keeps none.
      const loginCookie = readLoginCookie(ctx, cookies)
      if (loginCookie?.succeededAt) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: undefined })
      return unauthorized(ctx)
    }
    const isRenewed = current.record !== record
    // A kept result may come from another login that has the same refresh token, or from a version that did not store the
    // moment of login. Neither may extend this session's absolute age.
    if (isRenewed) await deliver(ctx, record, { ...current.record, loggedInAt: record.loggedInAt })
    if (current.kind === 'unavailable') throw unavailable(current.retryAfterSeconds)
    ctx.state.tokens = mode.tokens(current.record.fields, now())
    if (!isRenewed) return next()
    try {
      await next()
    } finally {
      // A logout may have come while the handler was at work, and has emptied the browser: this answer, coming after it,
      // must not fill it again.
      if (!ctx.headerSent && (await hasEnded(coordination, record.id))) {
        withholdCookies(ctx, sessionCookie.names)
        unauthorized(ctx)
      }
    }
  }

  /** With this answer, or, when the browser cannot be given it, by keeping it for the next request. */
  async function deliver(ctx: Context, before: SessionRecord, after: SessionRecord) {
    // What cannot be kept now was kept for the usual while already.
    const keep = () => void background.add(renewals.keepUndelivered(before, after)).catch(() => {})
    try {
      await writeSession(ctx, after)
    } catch (error) {
      keep()
      throw error
    }
    ifUndelivered(ctx, keep)
  }
}

/** The token objects of this request; there behind `requireTokens` alone. */
export function tokensOf(ctx: Context): Tokens {
  return ctx.state.tokens as Tokens
}

function ifUndelivered({ res }: Context, then: () => void): void {
  const check = () => {
    if (!res.writableFinished) then()
  }
  if (res.closed || res.destroyed) check()
  else res.once('close', check)
}

// Contract section 7: 401 and an empty body.
function unauthorized(ctx: Context): void {
  // Of JSON that a handler has made, Koa would leave `null`.
  ctx.remove('Content-Type')
  ctx.body = null
  ctx.status = 401
}

function unavailable(retryAfterSeconds: number): BusyError {
  const description = 'The identity provider could not renew your session just now. You are still signed in.'
  return new BusyError(description, retryAfterSeconds)
}
