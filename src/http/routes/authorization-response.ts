/** Parses the authorization response (RFC 6749 section 4.1.2) from the query of the callback. */
import type { AuthorizationResponse } from '../../login/complete-login.js'
import { invalidRequest } from '../errors/http-error.js'

const PARAMETERS = ['code', 'state', 'error', 'error_description', 'error_uri', 'iss']
const MAX_LENGTH = 4096
const PRINTABLE = /^[ -~]+$/

// RFC 6749 section 4.1.2.1 and OpenID Connect Core section 3.1.2.6. Any other error code is replaced by
// `invalid_request`.
const REGISTERED_ERRORS = new Set([
  'invalid_request',
  'unauthorized_client',
  'access_denied',
  'unsupported_response_type',
  'invalid_scope',
  'server_error',
  'temporarily_unavailable',
  'interaction_required',
  'login_required',
  'account_selection_required',
  'consent_required'
])

/**
 * Parses the parameters of the callback. Ignores parameters that the protocol does not define. Throws HttpError 400 if
 * the response is malformed.
 */
export function parseAuthorizationResponse(query: URLSearchParams): AuthorizationResponse {
  const repeated = PARAMETERS.find(name => query.getAll(name).length > 1)
  if (repeated) throw invalidRequest(`The parameter ${repeated} must not be repeated.`)
  const state = parameter(query, 'state')
  if (state === undefined) throw invalidRequest('The parameter state is missing.')
  const [code, error, iss] = [parameter(query, 'code'), parameter(query, 'error'), parameter(query, 'iss')]
  if (code !== undefined && error === undefined) return { kind: 'code', state, iss, code }
  if (error !== undefined && code === undefined) {
    return { kind: 'error', state, iss, error: REGISTERED_ERRORS.has(error) ? error : 'invalid_request' }
  }
  throw invalidRequest('Exactly one of the parameters code and error is required.')
}

function parameter(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  if (value === null || value === '') return undefined
  if (value.length > MAX_LENGTH || !PRINTABLE.test(value)) throw invalidRequest(`The parameter ${name} is malformed.`)
  return value
}
