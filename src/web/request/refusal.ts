import { isWeakness } from '../../login/authentication.js'
import type { Current, Problem } from '../../sessions/index.js'

/**
 * The response to a request whose session cannot be used:
 * - 401 if the session is over, 403 if the account is no longer allowed
 * - 503 if the session cannot be refreshed now. With `mayBeOver`, the user may have to sign in again.
 */
export type Refusal =
  | { readonly status: 401 | 403; readonly clearsCookies: boolean }
  | { readonly status: 503; readonly retryAfterSeconds: number; readonly mayBeOver: boolean; readonly why: Problem }

/** Decides how this server responds to a request without a live session, on the public port and to a gateway. */
export function refusalOf(current: Exclude<Current, { readonly kind: 'live' }>): Refusal {
  if (current.kind === 'unavailable') {
    const { retryAfterSeconds, why } = current
    return { status: 503, retryAfterSeconds, mayBeOver: why === 'refused', why }
  }
  const { end } = current
  const { reason } = end
  // The cookies are kept in two cases. After a logout, the browser may already have the cookie of a newer login. If the store has
  // lost the newest revision, the cookie of a later request may still contain it.
  const clearsCookies = reason !== 'logged_out' && reason !== 'lost'
  // A user who must sign in in another way gets 401, because a new login helps.
  const isNotAllowed = end.reason === 'denied' && !isWeakness(end)
  return { status: isNotAllowed ? 403 : 401, clearsCookies }
}
