import { UnusableTokenSetError } from './errors.js'
import { isJsonObject } from './json.js'

/** What the token endpoint returned (RFC 6749 section 5.1), checked. */
export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Seconds. */
  readonly expiresIn: number
  /** Undefined when the provider left it out, meaning: as asked for. */
  readonly scope: readonly string[] | undefined
  readonly idToken: string | undefined
}

// Ten years: beyond any real lifetime, and far from where milliseconds stop being whole numbers.
const LONGEST_LIFETIME_SECONDS = 315_360_000

/**
 * Checks a token response.
 * @throws UnusableTokenSetError naming the first member that is not as RFC 6749 requires. It carries the response's refresh
 *   token, if there is one.
 */
export function parseTokenSet(json: unknown): TokenSet {
  if (!isJsonObject(json)) throw new UnusableTokenSetError('the answer is not a JSON object', undefined)
  const unusable = (detail: string) =>
    new UnusableTokenSetError(detail, isToken(json.refresh_token) ? json.refresh_token : undefined)
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: expiresIn } = json
  if (!isToken(accessToken)) throw unusable('access_token is not a non-empty string')
  if (typeof expiresIn !== 'number' || !(expiresIn > 0 && expiresIn <= LONGEST_LIFETIME_SECONDS)) {
    throw unusable('expires_in is not a positive number of seconds')
  }
  if (!isAbsent(refreshToken) && !isToken(refreshToken)) throw unusable('refresh_token is not a non-empty string')
  const tokenType = json.token_type
  if (!isAbsent(tokenType) && !(typeof tokenType === 'string' && tokenType.toLowerCase() === 'bearer')) {
    throw unusable('token_type is not Bearer')
  }
  const { scope, id_token: idToken } = json
  if (!isAbsent(scope) && typeof scope !== 'string') throw unusable('scope is not a string')
  if (!isAbsent(idToken) && !isToken(idToken)) throw unusable('id_token is not a non-empty string')
  return {
    accessToken,
    refreshToken: refreshToken ?? undefined,
    expiresIn,
    scope: typeof scope === 'string' ? scope.split(' ').filter(Boolean) : undefined,
    idToken: idToken ?? undefined
  }
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

// RFC 6749 appendix A.12: tokens are printable ASCII.
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]+$/.test(value)
}
