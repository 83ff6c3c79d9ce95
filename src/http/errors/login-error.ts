/** Creates the error response of the callback for a login that failed. */
import type { CompletedLogin } from '../../login/complete-login.js'
import { DEFAULT_RETRY_SECONDS } from '../../refresh/busy.js'
import type { Site } from '../routes/site.js'
import { accountNotAllowed, BusyError, HttpError, invalidRequest } from './http-error.js'
import { loginCookieMissing } from './missing-cookie.js'
import { providerBusy } from './provider-failure.js'

export type FailedLogin = Exclude<CompletedLogin, { readonly kind: 'signedIn' | 'kept' | 'failed' }>

export function failedLogin(failed: FailedLogin, { cookies, loginPath }: Site): HttpError {
  switch (failed.kind) {
    case 'foreign':
      return signInAgain('This login was not started in this browser.')
    case 'unbound':
      return loginCookieMissing(cookies, failed.startedAt)
    case 'expired':
      return signInAgain('This login took too long.')
    case 'otherIssuer':
      return signInAgain('This answer did not come from the configured identity provider.')
    case 'notAuthorized':
      return notAuthorized(failed.error)
    case 'codeRejected':
      return signInAgain('The identity provider did not accept this login any more.')
    case 'used':
      return signInAgain('This login has been used already.')
    case 'signedOut':
      return signInAgain('The identity provider has signed you out since this login began.')
    case 'denied':
      return accountNotAllowed()
    case 'pending': {
      // The error page repeats the callback. By then the code exchange may have ended, and the store has its result.
      const { retryAfterSeconds } = failed
      const description = 'The identity provider has not answered in time.'
      return new BusyError({ description, retryAfterSeconds, status: 504 })
    }
    case 'busy': {
      const newLogin = `${loginPath}?${new URLSearchParams({ return_to: failed.returnTo })}`
      return providerBusy(failed.cause, failed.retry === 'login' ? newLogin : undefined)
    }
  }
}

function signInAgain(description: string): HttpError {
  return invalidRequest(`${description} Please sign in again.`)
}

// RFC 6749 section 4.1.2.1. The `error_description` is not shown, because anyone can write a text into this address.
function notAuthorized(error: string): HttpError {
  switch (error) {
    case 'access_denied':
      return new HttpError({ status: 403, error, description: 'The login was cancelled, or access was not granted.' })
    case 'temporarily_unavailable':
    case 'server_error': {
      const description = 'The identity provider cannot sign anyone in at the moment.'
      return new HttpError({
        status: 503,
        error,
        description,
        headers: { 'Retry-After': String(DEFAULT_RETRY_SECONDS) }
      })
    }
    default:
      return new HttpError({
        status: 400,
        error,
        description: 'The identity provider did not accept the login request.'
      })
  }
}
