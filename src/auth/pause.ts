import type { Coordination } from '../coordination/coordination.js'
import { UpstreamError } from '../idp/errors.js'

/**
 * The quota of token requests belongs to the whole application. If the identity provider answered 429, or 503 with a
 * `Retry-After` (RFC 9110 section 10.2.3), all replicas pause for that time.
 */
export function pauseIfBusy(coordination: Coordination, error: unknown): void {
  // Without a status the call was not made, because too many were waiting in this process.
  if (!(error instanceof UpstreamError) || !error.isBusy || error.status === undefined) return
  coordination.pauseCalls((error.retryAfterSeconds ?? 1) * 1000)
}

/** The error of a code exchange that was not made because of such a pause: the same as if the provider had been asked. */
export function pausedError(pausedMs: number): UpstreamError {
  const retryAfterSeconds = Math.ceil(pausedMs / 1000)
  return new UpstreamError('token', 'unusable', 'it asked for a pause', { status: 429, retryAfterSeconds })
}
