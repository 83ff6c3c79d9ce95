/** Creates the callback's error response for a failed login. */

import type { Context } from 'koa'
import type { CookieNames, Site } from '../../config/site.js'
import { isLoopback } from '../../config/types/urls.js'
import { isWeakness } from '../../login/authentication.js'
import type { CompletedLogin } from '../../login/complete-login.js'
import { DEFAULT_RETRY_SECONDS, retrySecondsOf } from '../../login/failure.js'
import type { LoginLoopReason } from '../../pages/index.js'
import type { OAuthError, ProviderError } from '../../provider/provider-error.js'
import { accountNotAllowed, HttpError, TemporarilyUnavailableError } from './http-error.js'

type FailedLogin = Exclude<CompletedLogin, { readonly kind: 'signedIn' | 'restart' | 'kept' | 'notNeeded' | 'failed' }>

export function failedLogin(failed: FailedLogin, { cookies, loginPath }: Site): HttpError {
  switch (failed.kind) {
    case 'unbound':
      return loginCookieMissing(cookies)
    case 'notAuthorized':
      return notAuthorized(failed.error)
    case 'denied':
      return isWeakness(failed.denial) ? insufficientAuthentication() : accountNotAllowed()
    case 'pending': {
      // The error page loads the URL of the callback again after some seconds. The code exchange may have ended by then, and its
      // result may be in the store.
      const { retryAfterSeconds } = failed
      const description = 'The identity provider has not responded in time.'
      return new TemporarilyUnavailableError({ description, retryAfterSeconds, status: 504 })
    }
    case 'throttled': {
      const { cause, retry, prompt, returnTo } = failed
      const parameters = new URLSearchParams({ ...(prompt !== undefined && { prompt }), return_to: returnTo })
      return providerThrottled(cause, retry === 'login' ? `${loginPath}?${parameters}` : undefined)
    }
    default: {
      const [error, happened] = LOGIN_FAILURES[failed.kind]
      return new HttpError({ status: 400, error, description: `${happened} Please sign in again.` })
    }
  }
}

const LOGIN_FAILURES = {
  foreign: ['state_mismatch', 'This login was not started at this server.'],
  otherBrowser: [
    'state_mismatch',
    'This login was not started in this browser, or the browser has lost its login cookie.'
  ],
  expired: ['login_expired', 'This login took too long.'],
  otherIssuer: ['issuer_mismatch', 'This response did not come from the configured identity provider.'],
  codeRejected: ['code_rejected', 'The identity provider no longer accepts this login.'],
  used: ['code_reused', 'This login has been used already.'],
  signedOut: ['signed_out', 'The identity provider has signed you out since this login began.']
} as const

/** The error for a user who has not signed in strongly or recently enough. The code is that of RFC 9470 section 3. */
function insufficientAuthentication(): HttpError {
  const description = 'You have not signed in at the identity provider in the way that this application requires.'
  return new HttpError({ status: 403, error: 'insufficient_user_authentication', description })
}

// RFC 6749 section 4.1.2.1. The `error_description` is not shown, because anyone can put a message into this URL.
function notAuthorized(error: string): HttpError {
  if (error === 'access_denied') {
    return new HttpError({ status: 403, error, description: 'The login was cancelled, or access was not granted.' })
  }
  if (error === 'temporarily_unavailable' || error === 'server_error') {
    const headers = { 'Retry-After': String(DEFAULT_RETRY_SECONDS) }
    const description = 'The identity provider cannot sign anyone in at the moment.'
    return new HttpError({
      status: 503,
      error: 'temporarily_unavailable',
      reason: 'provider_refused',
      description,
      headers
    })
  }
  const description = `The identity provider did not sign you in (${error}).`
  return new HttpError({ status: 400, error: 'provider_refused', description })
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
  const description = 'The session cookie of a login that has just succeeded did not come back.'
  const others: readonly LoginLoopReason[] = startedAt === undefined ? ['cookieTooLarge', 'cookiesBlocked'] : []
  const reasons: readonly LoginLoopReason[] = isOtherHost ? ['otherHost', ...others] : others
  return cookieMissing('session_cookie_missing', description, reasons, startedAt)
}

/** The error for a callback without the login cookie. */
function loginCookieMissing({ secure }: CookieNames): HttpError {
  const reasons: readonly LoginLoopReason[] = secure
    ? ['secureCookieOnHttp', 'otherHost', 'cookiesBlocked']
    : ['otherHost', 'cookiesBlocked']
  return cookieMissing('login_cookie_missing', 'The login cookie did not come back.', reasons)
}

function cookieMissing(
  error: 'login_cookie_missing' | 'session_cookie_missing',
  description: string,
  reasons: readonly LoginLoopReason[],
  startedAt?: string
): HttpError {
  return new HttpError({ status: 400, error, description, diagnosis: { error, reasons, startedAt } })
}

/**
 * Returns the response for a request that the identity provider did not handle.
 * @param unreachableStatus the status if the server could not connect to the provider, or lost the connection
 */
export function providerFailure(error: OAuthError | ProviderError, unreachableStatus: 502 | 504 = 504): HttpError {
  if (error.reason === 'provider_throttled' || error.reason === 'queue_full')
    return providerThrottled(error as ProviderError)
  const [code, status, description] = PROVIDER_FAILURES.find(([reason]) => reason === error.reason) ?? UNUSABLE_RESPONSE
  return new HttpError({ status: status ?? unreachableStatus, error: code, description, cause: error })
}

const UNUSABLE_RESPONSE = [
  'provider_invalid_response',
  502,
  'The identity provider sent a response that could not be used.'
] as const

const PROVIDER_FAILURES = [
  ['consent_required', 403, 'The identity provider granted none of the permissions that this application needs.'],
  ['client_rejected', 502, 'The identity provider refused a request of this server.'],
  ['provider_refused', 502, 'The identity provider refused a request of this server.'],
  ['provider_timeout', 504, 'The identity provider did not respond in time.'],
  ['provider_unreachable', undefined, 'The identity provider could not be reached.']
] as const

/**
 * Returns the error with the status 503 for a provider that asks to send fewer requests, or for a full queue of requests to it.
 * @param cause an error whose `isThrottled` is true
 * @param retryPath the URL that the error page opens after the waiting time; undefined if the page should repeat the
 *   failed request
 */
function providerThrottled(cause: ProviderError, retryPath?: string): TemporarilyUnavailableError {
  const description =
    cause.problem === 'queue_full'
      ? 'Too many requests wait for the identity provider.'
      : 'The identity provider is busy.'
  return new TemporarilyUnavailableError({ description, retryAfterSeconds: retrySecondsOf(cause), retryPath, cause })
}
