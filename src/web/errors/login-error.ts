/** The error responses to failed logins, and to requests that the identity provider did not handle. */

import type { Context } from 'koa'
import type { Site } from '../../config/site.js'
import { isLoopback } from '../../config/types/urls.js'
import { isWeakness } from '../../login/authentication.js'
import type { CompletedLogin } from '../../login/complete-login.js'
import { DEFAULT_RETRY_SECONDS, retrySecondsOf } from '../../login/failure.js'
import type { ProviderError } from '../../provider/provider-error.js'
import { signInUrl } from '../request/returning.js'
import { ERRORS, type ErrorCode } from './error-codes.js'
import { HttpError } from './http-error.js'

type FailedLogin = Exclude<CompletedLogin, { readonly kind: 'signedIn' | 'restart' | 'kept' | 'notNeeded' | 'failed' }>

export function failedLogin(failed: FailedLogin, { cookies, loginPath }: Site): HttpError {
  switch (failed.kind) {
    case 'unbound':
      return new HttpError('login_cookie_missing', {
        diagnosis: {
          reasons: [...(cookies.secure ? (['secureCookieOnHttp'] as const) : []), 'otherHost', 'cookiesBlocked']
        }
      })
    case 'notAuthorized':
      return notAuthorized(failed.error)
    case 'denied':
      return new HttpError(isWeakness(failed.denial) ? 'insufficient_user_authentication' : 'account_not_allowed')
    case 'pending':
      // The error page loads the URL of the callback again after some seconds. The code exchange may have ended by then, and its
      // result may be in the store.
      return new HttpError('provider_timeout', { retry: { afterSeconds: 1 } })
    case 'throttled': {
      const { cause, retry, prompt, returnTo } = failed
      return providerThrottled(cause, retry === 'login' ? signInUrl(loginPath, returnTo, prompt) : undefined)
    }
    default:
      return new HttpError(CODES[failed.kind])
  }
}

const CODES = {
  foreign: 'state_mismatch',
  otherBrowser: 'state_mismatch',
  expired: 'login_expired',
  otherIssuer: 'issuer_mismatch',
  codeRejected: 'code_rejected',
  used: 'code_reused',
  signedOut: 'signed_out'
} as const

// RFC 6749 section 4.1.2.1. The `error_description` is not shown, because anyone can put a message into this URL.
function notAuthorized(error: string): HttpError {
  if (error === 'access_denied') return new HttpError(error)
  if (error === 'temporarily_unavailable' || error === 'server_error') {
    return new HttpError('temporarily_unavailable', {
      reason: 'provider_refused',
      description: 'The identity provider cannot sign anyone in at the moment.',
      // No `retry`, because the same URL would have the same error.
      headers: { 'Retry-After': String(DEFAULT_RETRY_SECONDS) }
    })
  }
  const description = `The identity provider did not sign you in (${error}).`
  return new HttpError('provider_refused', { status: 400, description })
}

/**
 * Returns the host of this request if it differs from the callback's host and both are names of this machine, such as
 * 127.0.0.1 and localhost. In every other case it returns undefined, because a proxy may have put an internal name into
 * the Host header, and users must not see this name.
 */
export function otherLoopbackName({ host }: Context, callbackHost: string): string | undefined {
  const [here, there] = [`http://${host}`, `http://${callbackHost}`]
  if (!URL.canParse(here) || !isLoopback(here) || !isLoopback(there)) return undefined
  // Cookies ignore the port (RFC 6265 section 8.5), so a different port alone does not explain a missing cookie.
  return new URL(here).hostname === new URL(there).hostname ? undefined : host
}

/**
 * The error for a session cookie that the browser did not send back, although it sent the login cookie.
 * @param isOtherHost true if the login began on a host other than the callback's host
 * @param startedAt the host on which the login began, if the page may show it
 */
export function sessionCookieMissing(isOtherHost: boolean, startedAt: string | undefined): HttpError {
  const reasons = [
    ...(isOtherHost ? (['otherHost'] as const) : []),
    ...(startedAt === undefined ? (['cookieTooLarge', 'cookiesBlocked'] as const) : [])
  ]
  return new HttpError('session_cookie_missing', { diagnosis: { reasons, startedAt } })
}

/**
 * Returns the response for a request that the identity provider did not handle.
 * @param unreachableStatus the status if the server could not connect to the provider, or lost the connection
 */
export function providerFailure(cause: ProviderError, unreachableStatus: 502 | 504 = 504): HttpError {
  const { reason } = cause
  if (reason === 'provider_throttled' || reason === 'queue_full') return providerThrottled(cause)
  // A reason that is no code of a response means that the response of the provider cannot be used.
  const error = reason in ERRORS ? (reason as ErrorCode) : 'provider_invalid_response'
  return new HttpError(error, { cause, ...(error === 'provider_unreachable' && { status: unreachableStatus }) })
}

/**
 * Returns the error with the status 503 for a provider that asks to send fewer requests, or for a full queue of requests to it.
 * @param cause an error whose `isThrottled` is true
 * @param path the URL that the error page opens after the waiting time; undefined if the page should repeat the failed request
 */
function providerThrottled(cause: ProviderError, path?: string): HttpError {
  const description =
    cause.problem === 'queue_full'
      ? 'Too many requests wait for the identity provider.'
      : 'The identity provider is busy.'
  return new HttpError('temporarily_unavailable', {
    description,
    cause,
    retry: { afterSeconds: retrySecondsOf(cause), path }
  })
}
