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

/**
 * Whether this browser was given a session a moment ago and comes without one to ask for the next.
 * @param maxAgeSeconds how long a session lives at most; a cookie that has run out is not missing
 */
export function isLoginLoop(
  ctx: Context,
  names: CookieNames,
  loginCookie: LoginCookie,
  { now, maxAgeSeconds }: { readonly now: number; readonly maxAgeSeconds: number }
): boolean {
  const { succeededAt } = loginCookie
  if (succeededAt === undefined || readCookie(ctx.get('Cookie'), names.session) !== undefined) return false
  return succeededAt <= now && now - succeededAt < Math.min(JUST_NOW_MS, maxAgeSeconds * 1000)
}

/** A session cookie was set and did not come back, although the login cookie beside it did. */
export function sessionCookieMissing({ isOtherHost }: { readonly isOtherHost: boolean }): HttpError {
  const description = 'The session cookie of a login that has just succeeded did not come back.'
  return cookieMissing(description, [
    ...(isOtherHost ? (['other_host'] as const) : []),
    'cookie_too_large',
    'cookies_blocked'
  ])
}

/** The callback was reached without the login cookie. */
export function loginCookieMissing({ secure }: CookieNames): HttpError {
  const description = 'The login cookie did not come back.'
  return cookieMissing(description, [
    ...(secure ? (['secure_cookie_on_http'] as const) : []),
    'other_host',
    'cookies_blocked'
  ])
}

function cookieMissing(description: string, reasons: readonly LoginLoopReason[]): HttpError {
  return new HttpError(400, 'session_cookie_missing', description, {}, reasons)
}
