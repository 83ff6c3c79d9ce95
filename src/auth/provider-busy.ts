/** Reactions to an identity provider that is busy: a pause for all replicas, and the delay after which to try again. */
import type { Coordination } from '../coordination/coordination.js'
import { UpstreamError } from '../idp/errors.js'

/**
 * Pauses the token requests of all replicas if the identity provider answered 429, or 503 with a `Retry-After` (RFC
 * 9110 section 10.2.3). All replicas must pause because they share one quota.
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

// Delays for a provider that sends no Retry-After, and for calls that were refused because our own queue is full.
const DEFAULT_RETRY_SECONDS = 5
const QUEUE_RETRY_SECONDS = 2

/**
 * Returns the number of seconds after which a call to a busy provider (`error.isBusy`) should be repeated. It is at least
 * one second, because pages would otherwise retry without a pause.
 */
export function retrySecondsOf({ problem, retryAfterSeconds = DEFAULT_RETRY_SECONDS }: UpstreamError): number {
  return problem === 'busy' ? QUEUE_RETRY_SECONDS : Math.max(1, retryAfterSeconds)
}
