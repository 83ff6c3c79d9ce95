import { OAuthError } from '../idp/errors.js'

/** The state of a refresh token after the identity provider has answered with an error. */
export type Refusal =
  /** The refresh token is invalid and will never work again. */
  | { readonly kind: 'final' }
  /**
   * The refresh token may be invalid. Some providers return this error for an invalid token, and others for a temporary
   * fault. `since` is the time of the first such error.
   */
  | { readonly kind: 'suspected'; readonly since: number }
  /** The error says nothing about the refresh token. */
  | { readonly kind: 'none' }

// If the provider still answers `invalid_request` after this time, the refresh token is considered invalid.
const SUSPICION_MS = 30_000

/**
 * @param since when the provider first answered `invalid_request` to this token, in milliseconds since the epoch
 * @param now milliseconds since the epoch
 */
export function judgeRefusal(error: unknown, since: number | undefined, now: number): Refusal {
  if (!(error instanceof OAuthError)) return { kind: 'none' }
  if (error.error === 'invalid_grant') return { kind: 'final' }
  if (error.status !== 400) return { kind: 'none' }
  // A refresh token never regains a scope that it has lost.
  if (error.error === 'invalid_scope') return { kind: 'final' }
  if (error.error !== 'invalid_request') return { kind: 'none' }
  // Dex answers `invalid_request` for an invalid refresh token.
  if (since !== undefined && now - since >= SUSPICION_MS) return { kind: 'final' }
  return { kind: 'suspected', since: since ?? now }
}
