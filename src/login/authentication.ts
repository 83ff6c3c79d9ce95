/**
 * Decides whether a user has signed in at the provider in the way that the operator asked for. A user can remove a parameter from
 * the URL of a login, and providers may ignore `acr_values` (OpenID Connect Core section 3.1.2.1), so only the ID token counts.
 */
import type { UserInfo } from '../provider/id-token.js'
import type { Denial } from '../sessions/index.js'

export interface AuthenticationRequirements {
  /** The setting `access.acr`. */
  readonly acr?: readonly string[] | undefined
  /** The parameter `max_age` in `platform.authorizationParams`. */
  readonly maxAgeSeconds?: number | undefined
}

// The user may read a consent page between the authentication and the exchange of the code.
const AUTH_TIME_LEEWAY_SECONDS = 60

/** Creates the rule. It returns undefined if the claims of an ID token satisfy the requirements. */
export function createAuthenticationRule({ acr, maxAgeSeconds }: AuthenticationRequirements) {
  return function weaknessOf(claims: UserInfo, isLogin: boolean): Denial | undefined {
    // The ID token of a refresh may lack `acr`. Its `auth_time` is that of the login, so it grows old.
    if (acr && (isLogin || claims.acr !== undefined) && !acr.some(level => level === claims.acr)) {
      return weakness('acr', claims.acr, acr.join(' '))
    }
    if (!isLogin || maxAgeSeconds === undefined) return undefined
    // Both times come from the provider, so a wrong clock of this machine makes no difference. The nonce shows that the ID token is
    // not older than this login.
    const { iat, auth_time } = claims
    const age = typeof iat === 'number' && typeof auth_time === 'number' ? iat - auth_time : undefined
    if (age !== undefined && age <= maxAgeSeconds + AUTH_TIME_LEEWAY_SECONDS) return undefined
    return weakness('auth_time', age, String(maxAgeSeconds))
  }
}

function weakness(problem: 'acr' | 'auth_time', value: unknown, required: string): Denial {
  const found = typeof value === 'string' ? value : JSON.stringify(value)
  // The value comes from the provider and is logged.
  return { reason: 'denied', problem, missing: [], required, ...(found && /^[ -~]{1,200}$/.test(found) && { found }) }
}

/** True if the same account may sign in if it signs in again in another way. */
export function isWeakness({ problem }: Denial): boolean {
  return problem === 'acr' || problem === 'auth_time'
}
