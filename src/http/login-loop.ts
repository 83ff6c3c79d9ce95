/**
 * Stops login loops. A page that asks for a login whenever nobody is signed in would repeat the login for ever if the browser
 * does not keep the session cookie. The person then gets one page that explains why, and the operator gets one log line.
 */
import type { Context } from 'koa'
import { isLoopback } from '../config/addresses.js'
import type { LoginLoopReason } from '../pages/index.js'
import { readCookie } from '../session/cookie-header.js'
import type { CookieNames } from './cookies.js'
import { HttpError } from './errors.js'
import type { LoginCookie } from './login-cookie.js'

// A loop repeats within seconds. A login that comes later than this has another cause, such as a session that was lost since.
const JUST_NOW_MS = 60_000

/**
 * True if this browser received a session a moment ago and now asks for a login without a session cookie.
 * @param now milliseconds since the epoch
 * @param maxAgeSeconds how long a session lives at most; a cookie that has expired is not missing
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

/**
 * The host of this request, if it and the callback's host are two names of this machine, such as 127.0.0.1 and localhost. Only
 * then is it shown to people: on any other deployment a proxy may have put an internal name into the Host header.
 */
export function otherLoopbackName({ host }: Context, callbackHost: string): string | undefined {
  const [here, there] = [`http://${host}`, `http://${callbackHost}`]
  if (!URL.canParse(here) || !isLoopback(here) || !isLoopback(there)) return undefined
  // Cookies do not know ports (RFC 6265 section 8.5), so another port alone explains nothing.
  return new URL(here).hostname === new URL(there).hostname ? undefined : host
}

/** A session cookie was set and did not come back, although the login cookie beside it did. */
export function sessionCookieMissing({
  isOtherHost,
  startedAt
}: {
  readonly isOtherHost: boolean
  readonly startedAt: string | undefined
}): HttpError {
  const description = 'The session cookie of a login that has just succeeded did not come back.'
  return cookieMissing(
    description,
    [...(isOtherHost ? (['other_host'] as const) : []), 'cookie_too_large', 'cookies_blocked'],
    startedAt
  )
}

/** The callback was reached without the login cookie. */
export function loginCookieMissing({ secure }: CookieNames, startedAt: string | undefined): HttpError {
  const reasons: readonly LoginLoopReason[] = secure
    ? ['secure_cookie_on_http', 'other_host', 'cookies_blocked']
    : ['other_host', 'cookies_blocked']
  return cookieMissing('The login cookie did not come back.', reasons, startedAt)
}

// Two names of this machine explain a missing cookie so well that the page does not speak of other reasons.
function cookieMissing(description: string, reasons: readonly LoginLoopReason[], startedAt: string | undefined) {
  const diagnosis = startedAt === undefined ? { reasons, startedAt } : { reasons: ['other_host'] as const, startedAt }
  return new HttpError(400, 'session_cookie_missing', description, {}, diagnosis)
}
