/**
 * Decides what the error of a token request means: whether the refresh token is invalid, and when the request may be repeated.
 */
import { OAuthError, ProviderError } from '../provider/errors.js'
import type { SessionStore } from '../store/store.js'

/**
 * What the error of a refresh says about the refresh token:
 * - `final`: the refresh token is invalid and will never work again
 * - `ambiguous`: the refresh token may be invalid. Some providers return this error for an invalid token, and others for a
 *   temporary fault.
 * - `none`: the error says nothing about the refresh token
 */
type TokenRejection = 'final' | 'ambiguous' | 'none'

// If the provider still responds with `invalid_request` 30 seconds after the first such response, the refresh token counts as
// invalid.
const AMBIGUOUS_MS = 30_000

/** @param suspectMs the milliseconds since the provider first responded with `invalid_request` to this token */
export function judgeRejection(error: unknown, suspectMs: number | undefined): TokenRejection {
  if (!(error instanceof OAuthError)) return 'none'
  if (error.error === 'invalid_grant') return 'final'
  if (error.status !== 400) return 'none'
  // A refresh token never regains a scope that it has lost, so the same request cannot succeed later.
  if (error.error === 'invalid_scope') return 'final'
  if (error.error !== 'invalid_request') return 'none'
  // Dex responds with `invalid_request` to an invalid refresh token, but other providers do so for a temporary fault.
  return suspectMs !== undefined && suspectMs >= AMBIGUOUS_MS ? 'final' : 'ambiguous'
}

/**
 * Pauses the token requests of all replicas if the identity provider responded with 429, or with 503 and a `Retry-After` (RFC
 * 9110 section 10.2.3). All replicas must pause because they share one quota.
 */
export function pauseIfBusy(store: Pick<SessionStore, 'pause'>, error: unknown): void {
  // A busy error without a status means that the queue of this process was full. The request was not sent, so the provider has
  // not said that it is busy.
  if (!(error instanceof ProviderError) || !error.isBusy || error.status === undefined) return
  store.pause((error.retryAfterSeconds ?? 1) * 1000)
}

/**
 * Creates the error for a login whose token request was not sent because of a pause. The server handles this error like a 429
 * from the provider.
 */
export function pausedError(pausedMs: number): ProviderError {
  const retryAfterSeconds = Math.ceil(pausedMs / 1000)
  return new ProviderError('token', 'unusable', 'it asked for a pause', { status: 429, retryAfterSeconds })
}

/** The delay after a temporary failure if the response of the provider has no `Retry-After`. */
export const DEFAULT_RETRY_SECONDS = 5
// The delay for calls that the full queue of this process rejected. It is shorter than the default, because the queue empties
// quickly.
const QUEUE_RETRY_SECONDS = 2

/**
 * Returns the number of seconds after which a call to a busy provider (`error.isBusy`) should be repeated. It is at least 1,
 * because pages would otherwise repeat the call without a pause.
 */
export function retrySecondsOf({ problem, retryAfterSeconds = DEFAULT_RETRY_SECONDS }: ProviderError): number {
  return problem === 'busy' ? QUEUE_RETRY_SECONDS : Math.max(1, retryAfterSeconds)
}

const MIN_PAUSE_SECONDS = 1
const MAX_PAUSE_SECONDS = 60

/**
 * Returns the pause after a failed refresh of a session, in seconds: the provider's `Retry-After`, but at least 1 and at
 * most 60. Without a pause, every waiting page would cause another call to the provider.
 */
export function pauseSecondsAfter(error: unknown): number {
  const { retryAfterSeconds = MIN_PAUSE_SECONDS } = error as { readonly retryAfterSeconds?: number | undefined }
  return Math.min(MAX_PAUSE_SECONDS, Math.max(MIN_PAUSE_SECONDS, retryAfterSeconds))
}
