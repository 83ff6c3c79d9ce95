import { isJsonObject } from '../support/json.js'
import { UnusableTokenSetError } from './errors.js'

/** A checked response of the token endpoint (RFC 6749 section 5.1). */
export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** The lifetime of the access token in seconds. */
  readonly expiresIn: number
  /**
   * The granted scopes. Undefined if the response has no `scope`, which means that all requested scopes were granted.
   */
  readonly scope: readonly string[] | undefined
  readonly idToken: string | undefined
}

// Ten years. A real lifetime is much shorter, and a far larger number could not be converted to milliseconds exactly.
const MAX_LIFETIME_SECONDS = 315_360_000

/**
 * Checks the JSON of a token response.
 * @throws UnusableTokenSetError if a member violates RFC 6749. The message describes the first such member. The error
 *   keeps the refresh token of the response, if there is one.
 */
export function parseTokenSet(json: unknown): TokenSet {
  if (!isJsonObject(json)) throw new UnusableTokenSetError('the response is not a JSON object', undefined)
  const unusable = (detail: string) =>
    new UnusableTokenSetError(detail, isToken(json.refresh_token) ? json.refresh_token : undefined)
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: expiresIn } = json
  if (!isToken(accessToken)) throw unusable('access_token is not a non-empty string')
  if (typeof expiresIn !== 'number' || !(expiresIn > 0 && expiresIn <= MAX_LIFETIME_SECONDS)) {
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

// RFC 6749 appendix A.12: a token consists of printable ASCII characters.
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]+$/.test(value)
}
