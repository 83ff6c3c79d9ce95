/**
 * Checks the claims of ID tokens. The signature is not checked, because the server receives the token directly from the
 * token endpoint over TLS. OpenID Connect Core section 3.1.3.7 rule 6 allows this.
 */

import { isJsonObject, parseJson } from '../base/json.js'
import { type ProviderError, unusableTokens } from './provider-error.js'

/** The user info or the claims of an ID token. Any member may be missing or have another type. */
export type UserInfo = Readonly<Record<string, unknown>>

export interface ExpectedClaims {
  readonly nonce: string
  readonly clientId: string
  /**
   * The required `iss`. Undefined if the endpoints were configured without an issuer. Any `iss` is accepted in that
   * case.
   */
  readonly issuer: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

export interface IdTokenClaims extends UserInfo {
  readonly iss: string
  readonly sub: string
  /** The time of issue on the clock of the provider, in seconds since the epoch. */
  readonly iat: number
}

/** The clocks of the provider and of this server may differ by up to this many seconds. */
export const CLOCK_LEEWAY_SECONDS = 300

/** Checks the ID token of a login (OpenID Connect Core sections 2 and 3.1.3.7). Throws ProviderError. */
export function checkIdToken(idToken: string, expected: ExpectedClaims): IdTokenClaims {
  const claims = parseClaims(idToken)
  const nowSeconds = expected.now / 1000
  if (claims.nonce !== expected.nonce) throw unusable('its nonce is not that of this login')
  if (expected.issuer !== undefined && claims.iss !== expected.issuer) throw unusable('its iss is another issuer')
  checkAudience(claims, expected.clientId)
  if (typeof claims.exp !== 'number' || claims.exp + CLOCK_LEEWAY_SECONDS < nowSeconds) {
    throw unusable('it has expired')
  }
  if (typeof claims.iat !== 'number') throw unusable('it has no iat')
  if (claims.iat - CLOCK_LEEWAY_SECONDS > nowSeconds) throw unusable('its iat is in the future')
  const { iss, sub, iat } = claims
  if (!isIdentifier(iss)) throw unusable('it has no iss')
  if (!isIdentifier(sub)) throw unusable('it has no sub')
  return { ...claims, iss, sub, iat }
}

/**
 * Checks the ID token in the response to a refresh. It must name the same user as the login (OpenID Connect Core
 * section 12.2).
 * @returns the claims of the ID token
 * @throws ProviderError with the reason `identity_mismatch` if `iss` or `sub` is missing, or differs from the value at the login,
 *   and with another reason if the ID token proves nothing
 */
export function checkRefreshedIdToken(idToken: string, user: Pick<IdTokenClaims, 'iss' | 'sub'>, clientId: string) {
  const claims = parseClaims(idToken)
  const otherIdentity = (name: string) => unusable(`its ${name} differs from that of the login`, 'identity_mismatch')
  if (claims.iss !== user.iss) throw otherIdentity('iss')
  if (claims.sub !== user.sub) throw otherIdentity('sub')
  checkAudience(claims, clientId)
  return { ...claims, sub: user.sub }
}

function checkAudience({ aud, azp }: Readonly<Record<string, unknown>>, clientId: string): void {
  const audience = Array.isArray(aud) ? aud : [aud]
  if (!audience.includes(clientId)) throw unusable('its aud does not name this client')
  if (azp === undefined && audience.length > 1) throw unusable('its aud is a list, but azp is missing')
  if (azp !== undefined && azp !== clientId) throw unusable('its azp does not name this client')
}

// OpenID Connect Core section 2 limits `sub` to 255 ASCII characters. The limit is larger here, because this function
// also checks `iss`, which may be longer.
/** True for a usable value of `iss`, `sub` or `sid`. */
export function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]{1,1000}$/.test(value)
}

function parseClaims(idToken: string): Readonly<Record<string, unknown>> {
  const { claims } = readJwt(idToken)
  if (claims) return claims
  // A JWE has five parts (RFC 7516 section 3.1).
  const isEncrypted = /^(?:[\w-]*\.){4}[\w-]+$/.test(idToken)
  throw unusable(isEncrypted ? 'it is encrypted; configure the provider to only sign ID tokens' : 'it is not a JWT')
}

/**
 * Returns the header and the claims of a JWT, without any check. Each is undefined if it is not a JSON object, and both are for any other
 * string, such as an encrypted JWT.
 */
export function readJwt(token: string) {
  const [header, claims, signature, ...more] = token.split('.')
  if (signature === undefined || more.length > 0) return {}
  return { header: jsonObjectIn(header), claims: jsonObjectIn(claims) }
}

function jsonObjectIn(part = ''): Readonly<Record<string, unknown>> | undefined {
  const json = parseJson(Buffer.from(part, 'base64url').toString())
  return isJsonObject(json) ? json : undefined
}

/**
 * Returns the user info in a JWT (OpenID Connect Core section 5.3.2). As for ID tokens, the signature is not checked, because the
 * response comes from the provider over TLS. A JWT that the provider made for something else is rejected.
 */
export function userInfoOf(
  jwt: string,
  { issuer, clientId }: Pick<ExpectedClaims, 'issuer' | 'clientId'>,
  reject: (detail: string) => ProviderError
): Readonly<Record<string, unknown>> {
  const { header, claims } = readJwt(jwt)
  if (!claims) throw reject('it is not a signed JWT; encrypted user info is not supported')
  const alg = header?.alg
  if (typeof alg !== 'string' || alg.toLowerCase() === 'none') throw reject('its JWT is not signed')
  const { iss, aud } = claims
  if (iss !== undefined && issuer !== undefined && iss !== issuer) throw reject('its iss is another issuer')
  if (aud !== undefined && ![aud].flat().includes(clientId)) throw reject('its aud does not name this client')
  return claims
}

function unusable(detail: string, reason?: 'identity_mismatch'): ProviderError {
  return unusableTokens(`the ID token was rejected: ${detail}`, reason && { reason })
}
