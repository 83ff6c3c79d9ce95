import { isJsonObject } from '../support/json.js'
import { UnusableTokenSetError } from './errors.js'

/** A checked response of the token endpoint (RFC 6749 section 5.1). */
export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Lifetime of the access token in seconds. */
  readonly expiresIn: number
  /** Undefined if the provider left it out, which means that it granted the requested scope. */
  readonly scope: readonly string[] | undefined
  readonly idToken: string | undefined
}

// Ten years are longer than any real lifetime. Much larger numbers would lose precision when converted to milliseconds.
const MAX_LIFETIME_SECONDS = 315_360_000

/**
 * Checks a token response.
 * @throws {UnusableTokenSetError} naming the first member that violates RFC 6749; it carries the refresh token of the
 *   response, if there is one
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

// RFC 6749 appendix A.12: tokens are printable ASCII.
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]+$/.test(value)
}
