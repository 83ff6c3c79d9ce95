import { OAuthError } from '../idp/errors.js'

/** Whether an error of the identity provider means that this refresh token will never work again. */
export type Refusal =
  /** It never will. */
  | { readonly kind: 'final' }
  /** Perhaps: some providers say so of a dead token, others of a passing fault. `since` is when it was said first. */
  | { readonly kind: 'suspected'; readonly since: number }
  /** The error says nothing about the token. */
  | { readonly kind: 'none' }

// How long a provider must repeat `invalid_request` before the token counts as dead (design.md section 7).
const SUSPICION_MS = 30_000

/**
 * @param since when the provider first answered `invalid_request` to this token, in milliseconds since the epoch
 * @param now milliseconds since the epoch
 */
export function judgeRefusal(error: unknown, since: number | undefined, now: number): Refusal {
  if (!(error instanceof OAuthError)) return { kind: 'none' }
  if (error.error === 'invalid_grant') return { kind: 'final' }
  if (error.status !== 400) return { kind: 'none' }
  // A refresh token that does not cover our scopes any more cannot get them back.
  if (error.error === 'invalid_scope') return { kind: 'final' }
  if (error.error !== 'invalid_request') return { kind: 'none' }
  // Dex answers this for a dead token.
  if (since !== undefined && now - since >= SUSPICION_MS) return { kind: 'final' }
  return { kind: 'suspected', since: since ?? now }
}
