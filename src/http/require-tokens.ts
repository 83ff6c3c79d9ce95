import type { Context, Middleware } from 'koa'
import type { Mode, Tokens } from '../modes/mode.js'
import type { Renewals } from '../modes/renewal.js'
import type { CookieNames } from './cookies.js'
import { HttpError } from './errors.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord, writeSession } from './session.js'

export interface RequireTokensParts {
  readonly mode: Mode
  readonly renewals: Renewals
  readonly cookies: CookieNames
  readonly requestLog: RequestLog
  readonly now: () => number
}

/**
 * The refresh step (contract section 5.1, step 3): leaves `ctx.state.tokens`, or answers 401 with an empty body when
 * nobody is logged in, or 503 when the provider could not renew the session now.
 */
export function requireTokens({ mode, renewals, cookies, requestLog, now }: RequireTokensParts): Middleware {
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
    if (current.record !== record) {
      await writeSession(ctx, current.record)
      ifUndelivered(ctx, () => renewals.keepUndelivered(record, current.record))
    }
    if (current.kind === 'unavailable') throw unavailable(current.retryAfterSeconds)
    ctx.state.tokens = mode.tokens(current.record.fields, now())
    await next()
  }
}

/** The token objects of this request; there behind `requireTokens` alone. */
export function tokensOf(ctx: Context): Tokens {
  return ctx.state.tokens as Tokens
}

function ifUndelivered({ res }: Context, then: () => Promise<void>): void {
  const check = () => {
    // What cannot be kept now was kept for the usual while already.
    if (!res.writableFinished) then().catch(() => {})
  }
  if (res.closed || res.destroyed) check()
  else res.once('close', check)
}

// Contract section 7: 401 and an empty body.
function unauthorized(ctx: Context): void {
  ctx.body = null
  ctx.status = 401
}

function unavailable(retryAfterSeconds: number): HttpError {
  const description = 'The identity provider could not renew your session just now. You are still signed in.'
  return new HttpError(503, 'temporarily_unavailable', description, { 'Retry-After': String(retryAfterSeconds) })
}
