/**
 * The reasons why a login, a refresh or a revocation failed. The log, the metrics and the traces use the same words, and
 * docs/reference/error-codes.md describes them. The reason of an error does not depend on the name of its class.
 */
export const FAILURE_REASONS = [
  // The login was not sent, or not sent back, by this browser, or came too late.
  'invalid_request',
  'state_mismatch',
  'login_cookie_missing',
  'login_expired',
  'issuer_mismatch',
  'code_reused',
  // The provider did not sign the user in, or has ended the session.
  'access_denied',
  'account_not_allowed',
  'insufficient_user_authentication',
  'code_rejected',
  'consent_required',
  'identity_mismatch',
  'signed_out',
  // The provider did not handle a request.
  'client_rejected',
  'provider_invalid_response',
  'provider_refused',
  'provider_throttled',
  'provider_timeout',
  'provider_unreachable',
  'scope_refused',
  // This server or Redis is at fault.
  'queue_full',
  'redis_unavailable',
  'refresh_paused',
  'refresh_pending',
  'server_error',
  'session_limit_reached',
  'session_lost',
  'session_too_large',
  'stored_data_unreadable'
] as const

export type FailureReason = (typeof FAILURE_REASONS)[number]

const KNOWN: ReadonlySet<unknown> = new Set(FAILURE_REASONS)

/** An error that this program creates itself. The log has its reason as its type, and no stack. */
export abstract class KnownError extends Error {
  abstract readonly reason: string
}

/** Returns the reason of a known error, or undefined for any other error. */
export function reasonOf(error: unknown): string | undefined {
  return error instanceof KnownError ? error.reason : undefined
}

/** Returns the reason of a failure. An unexpected error is a fault of this server. */
export function failureReasonOf(error: unknown): FailureReason {
  const reason = reasonOf(error)
  return KNOWN.has(reason) ? (reason as FailureReason) : 'server_error'
}
