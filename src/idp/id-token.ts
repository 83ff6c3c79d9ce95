import { UpstreamError } from './errors.js'
import { isJsonObject } from './json.js'

export interface ExpectedClaims {
  readonly nonce: string
  readonly clientId: string
  /** Unknown when the endpoints were configured one by one; then it is not compared. */
  readonly issuer: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

// OpenID Connect Core section 3.1.3.7 allows for clocks that differ; five minutes is what platforms themselves accept.
const CLOCK_LEEWAY_SECONDS = 300

/**
 * Checks the claims of an ID token (OpenID Connect Core section 3.1.3.7). Its signature is not checked: it came straight
 * from the token endpoint over TLS, which rule 6 there accepts instead. Throws UpstreamError.
 */
export function checkIdToken(idToken: string, expected: ExpectedClaims): void {
  const claims = parseClaims(idToken)
  if (claims.nonce !== expected.nonce) throw unusable('its nonce is not the one of this login')
  if (expected.issuer !== undefined && claims.iss !== expected.issuer) throw unusable('its iss is another issuer')
  const audience = Array.isArray(claims.aud) ? claims.aud : [claims.aud]
  if (!audience.includes(expected.clientId)) throw unusable('its aud does not name this client')
  if (audience.length > 1 && claims.azp !== expected.clientId) throw unusable('its azp does not name this client')
  if (typeof claims.exp !== 'number' || claims.exp + CLOCK_LEEWAY_SECONDS < expected.now / 1000) {
    throw unusable('it has expired')
  }
}

function parseClaims(idToken: string): Readonly<Record<string, unknown>> {
  const parts = idToken.split('.')
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
    if (parts.length === 3 && isJsonObject(claims)) return claims
  } catch {
    // said below
  }
  throw unusable('it is not a JWT')
}

function unusable(detail: string): UpstreamError {
  return new UpstreamError('token', 'unusable', `the ID token was refused: ${detail}`)
}
