/**
 * The codes of the error responses. docs/reference/error-codes.md has the statuses, meanings and remedies, and docs/openapi.yaml
 * lists the codes. A code that is also a reason in the log has the same name there.
 */
export const ERROR_CODES = [
  // Requests.
  'invalid_request',
  'unauthorized',
  'forbidden',
  'cross_site_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'conflict',
  'content_too_large',
  'too_many_requests',
  'headers_too_large',
  // Logins.
  'login_cookie_missing',
  'session_cookie_missing',
  'state_mismatch',
  'login_expired',
  'issuer_mismatch',
  'code_rejected',
  'code_reused',
  'signed_out',
  'access_denied',
  'account_not_allowed',
  'insufficient_user_authentication',
  'consent_required',
  // The identity provider.
  'client_rejected',
  'provider_refused',
  'provider_invalid_response',
  'provider_timeout',
  'provider_unreachable',
  // The API proxy.
  'upstream_unauthorized',
  'upstream_invalid_response',
  'upstream_unreachable',
  'upstream_timeout',
  // This server.
  'server_error',
  'session_too_large',
  'temporarily_unavailable'
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]
