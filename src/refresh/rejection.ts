import { OAuthError } from '../provider/errors.js'

/**
 * What the error of a refresh says about the refresh token:
 * - `final`: the refresh token is invalid and will never work again
 * - `ambiguous`: the refresh token may be invalid. Some providers return this error for an invalid token, and others for a
 *   temporary fault.
 * - `none`: the error says nothing about the refresh token
 */
export type Rejection = 'final' | 'ambiguous' | 'none'

// If the provider still answers `invalid_request` after this time, the refresh token is considered invalid.
const AMBIGUOUS_MS = 30_000

/** @param suspectMs the milliseconds since the provider first answered `invalid_request` to this token */
export function judgeRejection(error: unknown, suspectMs: number | undefined): Rejection {
  if (!(error instanceof OAuthError)) return 'none'
  if (error.error === 'invalid_grant') return 'final'
  if (error.status !== 400) return 'none'
  // A refresh token never regains a scope that it has lost.
  if (error.error === 'invalid_scope') return 'final'
  if (error.error !== 'invalid_request') return 'none'
  // Dex answers `invalid_request` for an invalid refresh token.
  return suspectMs !== undefined && suspectMs >= AMBIGUOUS_MS ? 'final' : 'ambiguous'
}
