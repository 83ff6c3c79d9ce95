/**
 * When a login has just succeeded and its session cookie does not come back, a page that asks for a login whenever
 * nobody is logged in would go round for ever. The person gets one page that says why, and the operator one line.
 */
import type { Context } from 'koa'
import type { LoginLoopReason } from '../pages/index.js'
import { readCookie } from '../session/cookie-header.js'
import type { CookieNames } from './cookies.js'
import { HttpError } from './errors.js'
import type { LoginCookie } from './login-cookie.js'

// A loop goes round within seconds; who comes back later than this has had a session and lost it in some other way.
const JUST_NOW_MS = 60_000

/** Whether this browser was given a session a moment ago and comes without one to ask for the next. */
export function isLoginLoop(ctx: Context, names: CookieNames, loginCookie: LoginCookie, now: number): boolean {
  const { succeededAt } = loginCookie
  if (succeededAt === undefined || readCookie(ctx.get('Cookie'), names.session) !== undefined) return false
  return succeededAt <= now && now - succeededAt < JUST_NOW_MS
}

/** @param description for the JSON answer; the page explains the reasons at length. */
export function cookieMissing(description: string, names: CookieNames, host: 'same' | 'other' | 'unknown'): HttpError {
  const reasons: LoginLoopReason[] = []
  if (host === 'other') reasons.push('other_host')
  if (names.secure) reasons.push('secure_cookie_on_http')
  if (host === 'unknown') reasons.push('other_host')
  reasons.push('cookies_blocked')
  if (host !== 'unknown') reasons.push('cookie_too_large')
  return new HttpError(400, 'session_cookie_missing', description, {}, reasons)
}
