import { isWeakness } from '../../login/authentication.js'
import type { Current, Problem } from '../../sessions/index.js'

/**
 * The response to a request whose session cannot be used:
 * - 401 if the session is over, 403 if the account is no longer allowed
 * - 503 if the session cannot be refreshed now. With `mayBeOver`, the user may have to sign in again.
 */
export type Refusal =
  | { readonly status: 401 | 403; readonly clearsCookies: boolean }
  | {
      readonly status: 503
      readonly retryAfterSeconds: number
      readonly mayBeOver: boolean
      /** The seconds for which the session has had no valid token, or undefined if a sign-in would fail as well. */
      readonly withoutTokensSeconds: number | undefined
      readonly why: Problem
    }

// After a logout or a new login, the browser may already have the cookie of a newer login. If the store has lost the newest revision, the
// cookie of a later request may still contain it.
const KEEPS_COOKIES: readonly string[] = ['logged_out', 'replaced', 'lost']

// A login needs the store, too.
const PROBLEMS_OF_STORE: readonly Problem[] = ['store', 'unreadable']

/** Decides how this server responds to a request without a live session, on the public port and to a gateway. */
export function refusalOf(current: Exclude<Current, { readonly kind: 'live' }>, now: number): Refusal {
  if (current.kind === 'over') {
    const { end } = current
    // A user who must sign in in another way gets 401, because a new login helps.
    const isNotAllowed = end.reason === 'denied' && !isWeakness(end)
    return { status: isNotAllowed ? 403 : 401, clearsCookies: !KEEPS_COOKIES.includes(end.reason) }
  }
  const { retryAfterSeconds, why, record } = current
  const seconds = Math.max(0, Math.round((now - (record?.fields.expires_at ?? now)) / 1000))
  const withoutTokensSeconds = PROBLEMS_OF_STORE.includes(why) ? undefined : seconds
  return { status: 503, retryAfterSeconds, mayBeOver: why === 'refused', withoutTokensSeconds, why }
}
