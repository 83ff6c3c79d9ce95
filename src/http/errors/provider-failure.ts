/** Translates a failure of the identity provider into an error with the status 502, 503 or 504. */

import { OAuthError, type ProviderError } from '../../provider/errors.js'
import { retrySecondsOf } from '../../refresh/busy.js'
import { BusyError, HttpError } from './http-error.js'

export function providerFailure(error: OAuthError | ProviderError): HttpError {
  if (error instanceof OAuthError) return badGateway('The identity provider refused a request of this server.')
  if (error.isBusy) return providerBusy(error)
  if (error.problem === 'unusable') return badGateway('The identity provider sent a response that could not be used.')
  const happened = error.problem === 'unreachable' ? 'could not be reached' : 'did not answer in time'
  const description = `The identity provider ${happened}.`
  return new HttpError({ status: 504, error: 'temporarily_unavailable', description })
}

/**
 * Returns the error with the status 503 for a provider that is busy.
 * @param cause an error whose `isBusy` is true
 * @param retryPath the address that the error page opens after the waiting time; undefined if the page should repeat the
 *   failed request
 */
export function providerBusy(cause: ProviderError, retryPath?: string): BusyError {
  const description =
    cause.problem === 'busy' ? 'Too many requests wait for the identity provider.' : 'The identity provider is busy.'
  return new BusyError({ description, retryAfterSeconds: retrySecondsOf(cause), retryPath, cause })
}

function badGateway(description: string): HttpError {
  return new HttpError({ status: 502, error: 'server_error', description })
}
