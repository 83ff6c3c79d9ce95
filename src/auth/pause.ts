import type { Coordination } from '../coordination/coordination.js'
import { UpstreamError } from '../idp/errors.js'

/**
 * Pauses the token requests of all replicas if the identity provider answered 429, or 503 with a `Retry-After` (RFC
 * 9110 section 10.2.3). All replicas must pause because they share one quota. /
 */
export function pauseIfBusy(coordination: Coordination, error: unknown): void {
  // An error without a status comes from our own full queue: the identity provider was never called.
  if (!(error instanceof UpstreamError) || !error.isBusy || error.status === undefined) return
  coordination.pauseCalls((error.retryAfterSeconds ?? 1) * 1000)
}

/** The error of a code exchange that was not sent because of a pause. It equals the provider's own 429 error. */
export function pausedError(pausedMs: number): UpstreamError {
  const retryAfterSeconds = Math.ceil(pausedMs / 1000)
  return new UpstreamError('token', 'unusable', 'it asked for a pause', { status: 429, retryAfterSeconds })
}
