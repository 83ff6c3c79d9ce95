/** The errors for a cookie that the browser did not send back. The error page explains the likely causes. */
import type { Context } from 'koa'
import { isLoopback } from '../../config/addresses.js'
import type { LoginLoopReason } from '../../pages/index.js'
import type { CookieNames } from '../routes/cookies.js'
import { HttpError } from './http-error.js'

/**
 * Returns the host of this request if it differs from the callback's host and both are names of this machine, such as
 * 127.0.0.1 and localhost. In every other case it returns undefined. A proxy may have put an internal name into the
 * Host header, and people must not see this name.
 */
export function otherLoopbackName({ host }: Context, callbackHost: string): string | undefined {
  const [here, there] = [`http://${host}`, `http://${callbackHost}`]
  if (!URL.canParse(here) || !isLoopback(here) || !isLoopback(there)) return undefined
  // Cookies ignore the port (RFC 6265 section 8.5), so a different port alone does not explain a missing cookie.
  return new URL(here).hostname === new URL(there).hostname ? undefined : host
}

export interface LoginHost {
  /** True if the login began on a host other than the callback's host. */
  readonly isOtherHost: boolean
  /** The host on which the login began, if the page may show it. */
  readonly startedAt: string | undefined
}

/** The error for a session cookie that the browser did not send back, although it sent the login cookie. */
export function sessionCookieMissing({ isOtherHost, startedAt }: LoginHost): HttpError {
  const description = 'The session cookie of a login that has just succeeded did not come back.'
  const reasons: readonly LoginLoopReason[] = ['cookie_too_large', 'cookies_blocked']
  return cookieMissing(description, isOtherHost ? ['other_host', ...reasons] : reasons, startedAt)
}

/** The error for a callback without the login cookie. */
export function loginCookieMissing({ secure }: CookieNames, startedAt: string | undefined): HttpError {
  const reasons: readonly LoginLoopReason[] = secure
    ? ['secure_cookie_on_http', 'other_host', 'cookies_blocked']
    : ['other_host', 'cookies_blocked']
  return cookieMissing('The login cookie did not come back.', reasons, startedAt)
}

// If the login began under another name of this machine, the page gives only this reason for the missing cookie.
function cookieMissing(
  description: string,
  likelyReasons: readonly LoginLoopReason[],
  startedAt: string | undefined
): HttpError {
  const reasons: readonly LoginLoopReason[] = startedAt === undefined ? likelyReasons : ['other_host']
  const diagnosis = { reasons, startedAt }
  return new HttpError({ status: 400, error: 'session_cookie_missing', description, diagnosis })
}
