import { HttpError } from './errors.js'

/** What the identity provider sent along with the browser (RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207). */
export type AuthorizationResponse = { readonly state: string; readonly iss: string | undefined } & (
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'error'; readonly error: string }
)

const PARAMETERS = ['code', 'state', 'error', 'error_description', 'error_uri', 'iss']
const LONGEST = 4096
const PRINTABLE = /^[ -~]+$/

// RFC 6749 section 4.1.2.1 and OpenID Connect Core section 3.1.2.6; any other word is not passed on.
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

/** Throws HttpError 400 for what no identity provider sends. Parameters that are not the protocol's are passed over. */
export function parseAuthorizationResponse(query: URLSearchParams): AuthorizationResponse {
  const repeated = PARAMETERS.find(name => query.getAll(name).length > 1)
  if (repeated) throw malformed(`The parameter ${repeated} must occur once.`)
  const state = parameter(query, 'state')
  if (state === undefined) throw malformed('The parameter state is missing.')
  const [code, error, iss] = [parameter(query, 'code'), parameter(query, 'error'), parameter(query, 'iss')]
  if (code !== undefined && error === undefined) return { kind: 'code', state, iss, code }
  if (error !== undefined && code === undefined) {
    return { kind: 'error', state, iss, error: REGISTERED_ERRORS.has(error) ? error : 'invalid_request' }
  }
  throw malformed('Exactly one of the parameters code and error must be there.')
}

function parameter(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  if (value === null || value === '') return undefined
  if (value.length > LONGEST || !PRINTABLE.test(value)) throw malformed(`The parameter ${name} is malformed.`)
  return value
}

function malformed(description: string): HttpError {
  return new HttpError(400, 'invalid_request', description)
}
