/**
 * Stops login loops. If a page asks for a login whenever nobody is signed in, and the browser does not keep the session
 * cookie, the login would repeat for ever. The person then gets one page that explains the cause, and the operator gets
 * one log line.
 */
import type { Context } from 'koa'
import { isLoopback } from '../config/addresses.js'
import type { LoginLoopReason } from '../pages/index.js'
import { readCookie } from '../session/cookie-header.js'
import type { CookieNames } from './cookies.js'
import { HttpError } from './errors.js'
import type { LoginCookie } from './login-cookie.js'

// A loop repeats within seconds. A login that starts later has another cause, for example a session that was lost in
// the meantime.
const LOOP_WINDOW_MS = 60_000

/**
 * True if this browser received a session a moment ago and now requests a login without a session cookie.
 * @param now milliseconds since the epoch
 * @param maxAgeSeconds longest lifetime of a session; a cookie that has expired does not count as missing
 */
export function isLoginLoop(
  ctx: Context,
  names: CookieNames,
  loginCookie: LoginCookie,
  { now, maxAgeSeconds }: { readonly now: number; readonly maxAgeSeconds: number }
): boolean {
  const { succeededAt } = loginCookie
  if (succeededAt === undefined || readCookie(ctx.get('Cookie'), names.session) !== undefined) return false
  return succeededAt <= now && now - succeededAt < Math.min(LOOP_WINDOW_MS, maxAgeSeconds * 1000)
}

/**
 * Returns the host of this request if it and the callback's host are two names of this machine, such as 127.0.0.1 and
 * localhost. In every other case it returns undefined, because a proxy may have put an internal name into the Host
 * header, and people must not see that name.
 */
export function otherLoopbackName({ host }: Context, callbackHost: string): string | undefined {
  const [here, there] = [`http://${host}`, `http://${callbackHost}`]
  if (!URL.canParse(here) || !isLoopback(here) || !isLoopback(there)) return undefined
  // Cookies ignore the port (RFC 6265 section 8.5), so a different port alone does not explain a missing cookie.
  return new URL(here).hostname === new URL(there).hostname ? undefined : host
}

/** The error for a session cookie that the browser did not send back, although it sent the login cookie. */
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

/** The error for a callback without the login cookie. */
export function loginCookieMissing({ secure }: CookieNames, startedAt: string | undefined): HttpError {
  const reasons: readonly LoginLoopReason[] = secure
    ? ['secure_cookie_on_http', 'other_host', 'cookies_blocked']
    : ['other_host', 'cookies_blocked']
  return cookieMissing('The login cookie did not come back.', reasons, startedAt)
}

// If the login began under another name of this machine, that alone explains the missing cookie. The page then gives no
// other reason.
function cookieMissing(description: string, reasons: readonly LoginLoopReason[], startedAt: string | undefined) {
  const diagnosis = startedAt === undefined ? { reasons, startedAt } : { reasons: ['other_host'] as const, startedAt }
  return new HttpError(400, 'session_cookie_missing', description, {}, diagnosis)
}
