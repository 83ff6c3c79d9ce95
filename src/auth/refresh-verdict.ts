import { OAuthError } from '../idp/errors.js'

/** The meaning of an error from the identity provider for the refresh token that was sent. */
export type Refusal =
  /** The refresh token will never work again. */
  | { readonly kind: 'final' }
  /**
   * The refresh token may be dead. Some providers return this error for a dead token, others for a temporary fault.
   * `since` is the time of the first such error.
   */
  | { readonly kind: 'suspected'; readonly since: number }
  /** The error says nothing about the token. */
  | { readonly kind: 'none' }

// A token counts as dead when the provider has answered `invalid_request` for this long.
const SUSPICION_MS = 30_000

/**
 * @param since when the provider first answered `invalid_request` to this token, in milliseconds since the epoch
 * @param now milliseconds since the epoch
 */
export function judgeRefusal(error: unknown, since: number | undefined, now: number): Refusal {
  if (!(error instanceof OAuthError)) return { kind: 'none' }
  if (error.error === 'invalid_grant') return { kind: 'final' }
  if (error.status !== 400) return { kind: 'none' }
  // A refresh token that has lost one of our scopes can never regain it.
  if (error.error === 'invalid_scope') return { kind: 'final' }
  if (error.error !== 'invalid_request') return { kind: 'none' }
  // Dex answers `invalid_request` for a dead token.
  if (since !== undefined && now - since >= SUSPICION_MS) return { kind: 'final' }
  return { kind: 'suspected', since: since ?? now }
}
