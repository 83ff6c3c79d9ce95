/** Parses the responses of the token endpoint, in the forms in which real providers send them. */
import { isJsonObject } from '../base/json.js'
import { readJwt } from './id-token.js'
import { unusableTokens } from './provider-error.js'

/** A checked response of the token endpoint (RFC 6749 section 5.1). */
export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** The lifetime of the access token in seconds. */
  readonly expiresIn: number
  /**
   * The granted scopes. Undefined if the response has no `scope` or an empty one, which means that all requested scopes were
   * granted.
   */
  readonly scope: readonly string[] | undefined
  readonly idToken: string | undefined
}

// Ten years. Real lifetimes are much shorter. A far larger number could not be converted to milliseconds exactly.
const MAX_LIFETIME_SECONDS = 315_360_000

// The lifetime of an access token if neither the response nor the token itself tells it.
const DEFAULT_LIFETIME_SECONDS = 3600

// Some providers (Salesforce, GitLab) spell the type in lower case, and Apigee calls it `BearerToken`.
const BEARER = /^bearer(?:token)?$/i

/**
 * Checks the JSON of a token response.
 * @param date the `Date` of the response, in milliseconds since the epoch
 * @throws ProviderError if a member violates RFC 6749. The message describes the first such member. The error
 *   keeps the refresh token of the response, if there is one.
 */
export function parseTokenSet(json: unknown, date?: number): TokenSet {
  if (!isJsonObject(json)) throw unusableTokens('the response is not a JSON object')
  const unusable = (detail: string) =>
    unusableTokens(detail, { refreshToken: isToken(json.refresh_token) ? json.refresh_token : undefined })
  const { access_token: accessToken, refresh_token: refreshToken, token_type: tokenType, id_token: idToken } = json
  if (!isToken(accessToken)) throw unusable('access_token is not a non-empty string')
  const expiresIn = isEmpty(json.expires_in) ? lifetimeOf(accessToken, date) : secondsOf(json.expires_in)
  if (expiresIn === undefined) throw unusable('expires_in is not a positive number of seconds')
  if (!isEmpty(refreshToken) && !isToken(refreshToken))
    throw unusable('refresh_token is not a string of ASCII characters')
  if (!isEmpty(tokenType) && !(typeof tokenType === 'string' && BEARER.test(tokenType))) {
    throw unusable('token_type is not Bearer')
  }
  const scope = isEmpty(json.scope) ? [] : namesOf(json.scope)
  if (!scope) throw unusable('scope is neither a string nor a list of strings')
  if (!isEmpty(idToken) && !isToken(idToken)) throw unusable('id_token is not a string of ASCII characters')
  return {
    accessToken,
    refreshToken: isToken(refreshToken) ? refreshToken : undefined,
    expiresIn,
    scope: scope.length > 0 ? scope : undefined,
    idToken: isToken(idToken) ? idToken : undefined
  }
}

/** Returns the value of `expires_in`, which some providers (Azure AD B2C) send as a string of digits, or with white space. */
function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\s*\d{1,9}\s*$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && seconds > 0 && seconds <= MAX_LIFETIME_SECONDS ? seconds : undefined
}

/**
 * Returns the lifetime of an access token whose response has no `expires_in`, which RFC 6749 section 5.1 only recommends. Both
 * times come from the provider, so a wrong clock of this machine makes no difference. The signature of the token is not checked:
 * a wrong lifetime only changes the time of the next refresh.
 */
function lifetimeOf(accessToken: string, date: number | undefined): number {
  const { exp, iat } = readJwt(accessToken).claims ?? {}
  const from = date === undefined ? iat : date / 1000
  const seconds = typeof exp === 'number' && typeof from === 'number' ? secondsOf(exp - from) : undefined
  return seconds ?? DEFAULT_LIFETIME_SECONDS
}

// RFC 6749 section 3.3 requires a string. Twitch sends a list.
function namesOf(scope: unknown): string[] | undefined {
  const parts: unknown[] = Array.isArray(scope) ? scope : [scope]
  if (!parts.every(part => typeof part === 'string')) return undefined
  return parts.flatMap(part => part.split(/\s+/)).filter(Boolean)
}

// Some providers send every member of the response, and those that they have not issued are null or empty.
function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

// RFC 6749 appendix A.12: a token consists of printable ASCII characters.
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]+$/.test(value)
}
