/**
 * The claims of ID tokens. Signatures are not checked: each token came straight from the token endpoint over TLS, which
 * OpenID Connect Core section 3.1.3.7 rule 6 accepts instead. So signing keys may change at any time.
 */
import type { UserInfo } from './client.js'
import { UnusableTokenSetError, UpstreamError } from './errors.js'
import { isJsonObject } from './json.js'

export interface ExpectedClaims {
  readonly nonce: string
  readonly clientId: string
  /** Unknown when the endpoints were configured one by one; then it is not compared. */
  readonly issuer: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

export interface IdTokenClaims extends UserInfo {
  readonly iss: string
  readonly sub: string
}

// Section 3.1.3.7 allows for clocks that differ. Identity providers themselves accept five minutes.
const CLOCK_LEEWAY_SECONDS = 300

/** Checks the ID token of a login (OpenID Connect Core sections 2 and 3.1.3.7). Throws UpstreamError. */
export function checkIdToken(idToken: string, expected: ExpectedClaims): IdTokenClaims {
  const claims = parseClaims(idToken, unusable)
  const nowSeconds = expected.now / 1000
  if (claims.nonce !== expected.nonce) throw unusable('its nonce is not the one of this login')
  if (expected.issuer !== undefined && claims.iss !== expected.issuer) throw unusable('its iss is another issuer')
  checkAudience(claims, expected.clientId, unusable)
  if (typeof claims.exp !== 'number' || claims.exp + CLOCK_LEEWAY_SECONDS < nowSeconds) {
    throw unusable('it has expired')
  }
  if (typeof claims.iat !== 'number') throw unusable('it has no iat')
  if (claims.iat - CLOCK_LEEWAY_SECONDS > nowSeconds) throw unusable('its iat is in the future')
  const { iss, sub } = claims
  if (!isIdentifier(iss)) throw unusable('it has no iss')
  if (!isIdentifier(sub)) throw unusable('it has no sub')
  return { ...claims, iss, sub }
}

export interface ExpectedRefreshClaims {
  readonly iss: string
  readonly sub: string
  readonly clientId: string
  /** The refresh token that came with the ID token. The error carries it, because the one before may be spent. */
  readonly refreshToken?: string | undefined
}

/**
 * Checks the ID token of a refresh. It must be about the same login (OpenID Connect Core section 12.2).
 * @throws UnusableTokenSetError
 */
export function checkRefreshedIdToken(idToken: string, expected: ExpectedRefreshClaims): void {
  const refuse: Refuse = detail => new UnusableTokenSetError(messageOf(detail), expected.refreshToken)
  const claims = parseClaims(idToken, refuse)
  if (claims.iss !== expected.iss) throw refuse('its iss is not that of the login')
  if (claims.sub !== expected.sub) throw refuse('its sub is not that of the login')
  checkAudience(claims, expected.clientId, refuse)
}

/** Makes the error for a token that was refused. */
type Refuse = (detail: string) => UpstreamError

function checkAudience({ aud, azp }: Readonly<Record<string, unknown>>, clientId: string, refuse: Refuse): void {
  const audience = Array.isArray(aud) ? aud : [aud]
  if (!audience.includes(clientId)) throw refuse('its aud does not name this client')
  const needsAzp = audience.length > 1
  if ((needsAzp || azp !== undefined) && azp !== clientId) throw refuse('its azp does not name this client')
}

// Section 2 has 255 ASCII characters as the longest sub. An issuer is a URL, and is held to a bound of the same kind.
function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && /^[ -~]{1,1000}$/.test(value)
}

function parseClaims(idToken: string, refuse: Refuse): Readonly<Record<string, unknown>> {
  const parts = idToken.split('.')
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
    if (parts.length === 3 && isJsonObject(claims)) return claims
  } catch {
    // The error below says what is wrong.
  }
  throw refuse('it is not a JWT')
}

function unusable(detail: string): UpstreamError {
  return new UpstreamError('token', 'unusable', messageOf(detail))
}

function messageOf(detail: string): string {
  return `the ID token was refused: ${detail}`
}
