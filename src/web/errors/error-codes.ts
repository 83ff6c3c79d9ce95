/**
 * The error responses: the status of each code, and its description for the client. Where the description depends on the request, the
 * code that creates the error gives it. docs/reference/error-codes.md has the meanings and remedies, and docs/openapi.yaml lists the
 * codes. A code that is also a reason in the log has the same name there.
 */
const TABLE = {
  // Requests.
  invalid_request: [400, 'The request is not well-formed HTTP.'],
  unauthorized: [401, 'This browser has no session.'],
  forbidden: [403, 'Forbidden.'],
  cross_site_request: [403, 'Forbidden.'],
  not_found: [404, 'There is nothing at this URL.'],
  method_not_allowed: [405, 'Method Not Allowed.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  conflict: [409, 'Conflict.'],
  content_too_large: [413, 'Payload Too Large.'],
  too_many_requests: [429, 'Too Many Requests.'],
  headers_too_large: [431, 'The headers are too large.'],
  // Logins.
  login_cookie_missing: [400, 'The login cookie did not come back.'],
  session_cookie_missing: [400, 'The session cookie of a login that has just succeeded did not come back.'],
  state_mismatch: [
    400,
    'This login was not started at this server in this browser, or the browser has lost its login cookie. Please sign in again.'
  ],
  login_expired: [400, 'This login took too long. Please sign in again.'],
  issuer_mismatch: [400, 'This response did not come from the configured identity provider. Please sign in again.'],
  code_rejected: [400, 'The identity provider no longer accepts this login. Please sign in again.'],
  code_reused: [400, 'This login has been used already. Please sign in again.'],
  signed_out: [400, 'The identity provider has signed you out since this login began. Please sign in again.'],
  access_denied: [403, 'The login was cancelled, or access was not granted.'],
  // The log has the reason, and the response does not contain it.
  account_not_allowed: [403, 'This account may not sign in to this application.'],
  // RFC 9470 section 3.
  insufficient_user_authentication: [
    403,
    'You have not signed in at the identity provider in the way that this application requires.'
  ],
  consent_required: [403, 'The identity provider granted none of the permissions that this application needs.'],
  // The identity provider.
  client_rejected: [502, 'The identity provider refused a request of this server.'],
  provider_refused: [502, 'The identity provider refused a request of this server.'],
  provider_invalid_response: [502, 'The identity provider sent a response that could not be used.'],
  provider_timeout: [504, 'The identity provider did not respond in time.'],
  provider_unreachable: [504, 'The identity provider could not be reached.'],
  // The API proxy.
  upstream_unauthorized: [
    502,
    'The API refused the access token of your session (401), although it has not expired. Sign in again.'
  ],
  upstream_invalid_response: [502, 'The API sent no response that can be used.'],
  upstream_unreachable: [502, 'The API could not be reached.'],
  upstream_timeout: [504, 'The API did not respond in time.'],
  // This server.
  server_error: [500, 'Something went wrong on this server.'],
  session_too_large: [500, 'The tokens of this login are too large for a session of this server.'],
  temporarily_unavailable: [503, 'This server cannot handle the request at the moment.']
} as const

export type ErrorCode = keyof typeof TABLE

export const ERRORS: Readonly<Record<ErrorCode, readonly [status: number, description: string]>> = TABLE
