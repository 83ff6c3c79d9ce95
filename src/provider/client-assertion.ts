import { randomUUID } from 'node:crypto'
import type { SigningKey } from '../config/client-key.js'

/** RFC 7521 section 4.2. */
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

// Each assertion is used for one request. The time allows for clocks that differ.
const LIFETIME_SECONDS = 120

export interface AssertionRequest {
  readonly clientId: string
  /** The recipient: the issuer of the provider. */
  readonly audience: string
  /** The current time in milliseconds since the epoch. */
  readonly now: number
}

/**
 * Returns the parameters with which a client authenticates itself by its private key (RFC 7523 sections 2.2 and 3, OpenID
 * Connect Core section 9). The package jose is loaded at the first call, so a server without a client key never
 * loads it.
 */
export async function clientAssertion(
  { key, algorithm, keyId }: SigningKey,
  { clientId, audience, now }: AssertionRequest
): Promise<Record<string, string>> {
  const { SignJWT } = await import('jose')
  const issuedAt = Math.floor(now / 1000)
  const assertion = await new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .sign(key)
  return { client_id: clientId, client_assertion_type: ASSERTION_TYPE, client_assertion: assertion }
}
