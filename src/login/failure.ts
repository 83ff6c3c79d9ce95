/**
 * Decides what the error of a token request means: whether the refresh token is invalid, and when the request may be repeated.
 */

import type { Meaning } from '../provider/meaning.js'
import { ProviderError } from '../provider/provider-error.js'
import type { Sessions } from '../sessions/index.js'

/** Returns what the error of a token request means for the refresh token that was sent. */
export function meaningOfError(error: unknown): Meaning {
  return error instanceof ProviderError ? error.meaning : 'failure'
}

/**
 * Pauses the token requests of this kind on all replicas if the identity provider responded with 429, or with 503 and a `Retry-After` (RFC
 * 9110 section 10.2.3). All replicas must pause because they share one quota.
 */
export function pauseIfThrottled(sessions: Pick<Sessions, 'pause'>, of: 'login' | 'refresh', error: unknown): void {
  // Without a status, the queue of this process was full. The request was not sent, so the provider asked for no pause.
  if (!(error instanceof ProviderError) || !error.isThrottled || error.status === undefined) return
  sessions.pause(of, (error.retryAfterSeconds ?? 1) * 1000)
}

/**
 * Creates the error for a login whose token request was not sent because of a pause. The server handles this error like a 429
 * from the provider.
 */
export function pausedError(retryAfterSeconds: number): ProviderError {
  return new ProviderError('token', 'invalid_response', 'it asked for a pause, so no request was sent', {
    status: 429,
    retryAfterSeconds
  })
}

/** The delay after a temporary failure if the response of the provider has no `Retry-After`. */
export const DEFAULT_RETRY_SECONDS = 5
// The delay for calls that the full queue of this process rejected. It is shorter than the default, because the queue empties
// quickly.
const QUEUE_RETRY_SECONDS = 2

/**
 * Returns the number of seconds after which a throttled call (`error.isThrottled`) should be repeated. It is at least 1,
 * because pages would otherwise repeat the call without a pause.
 */
export function retrySecondsOf({ problem, retryAfterSeconds = DEFAULT_RETRY_SECONDS }: ProviderError): number {
  return problem === 'queue_full' ? QUEUE_RETRY_SECONDS : Math.max(1, retryAfterSeconds)
}

const MAX_PAUSE_SECONDS = 60

/**
 * Returns the pause after a failed refresh of a session, in seconds: the provider's `Retry-After`, but at least 1 and at
 * most 60. Without a pause, every waiting page would cause another call to the provider.
 * @param refusals the number of refusals of this refresh token that did not end the session. The pause grows with each of them
 */
export function pauseSecondsAfter(error: unknown, refusals = 0): number {
  const { retryAfterSeconds = 1 } = (error ?? {}) as { readonly retryAfterSeconds?: number | undefined }
  return Math.min(MAX_PAUSE_SECONDS, Math.max(retryAfterSeconds, 2 ** refusals))
}
