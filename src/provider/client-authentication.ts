/** Authenticates this server, as a client of the identity provider, with its client secret or its private key. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Config } from '../config/settings.js'
import { type SigningKey, signingKeyOf } from '../config/types/client-key.js'
import type { TransportRequest } from './attempt.js'
import { type GetEndpoint, issuerOf } from './metadata.js'
import { quirksOf } from './quirks.js'

export type ClientAuthentication = ReturnType<typeof createClientAuthentication>

// RFC 7521 section 4.2.
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

// An assertion is used for one request only, so its lifetime only has to allow for a difference between the clocks of
// the two servers.
const ASSERTION_LIFETIME_SECONDS = 120

/** @param now the clock, in milliseconds since the epoch */
export function createClientAuthentication(platform: Config['platform'], endpoint: GetEndpoint, now: () => number) {
  const { clientId, clientAuthMethod } = platform
  const issuer = issuerOf(platform)
  let { clientSecret } = platform
  let signingKey = signingKeyOf(platform)
  let basicCredentials: string | undefined
  let id = randomId()

  return {
    /** Returns the form with the parameters or the header that authenticate this client. */
    async authenticated(form: Record<string, string>): Promise<Pick<TransportRequest, 'form' | 'headers'>> {
      const tokenEndpoint = await endpoint('tokenEndpoint')
      if (clientAuthMethod === 'private_key_jwt' && signingKey) {
        // The audience is the issuer if it is known. If the audience were the token endpoint, a hostile provider could
        // name the token endpoint of another provider in its metadata, and replay the assertion there.
        const audience = issuer ?? tokenEndpoint
        return { form: { ...form, ...(await clientAssertion(signingKey, clientId, audience, now)) } }
      }
      if (clientAuthMethod === 'client_secret_post') {
        return { form: { ...form, client_id: clientId, client_secret: clientSecret } }
      }
      // RFC 6749 section 2.3.1: the client id and the secret are form-encoded before they are combined.
      if (basicCredentials === undefined) {
        const { takesPlainCredentials } = quirksOf({ issuer, tokenEndpoint })
        const encode = takesPlainCredentials ? (value: string) => value : formEncoded
        basicCredentials = Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')
      }
      return { form, headers: { authorization: `Basic ${basicCredentials}` } }
    },
    /** Returns a random name of the current credentials in this process. */
    credentialsId: () => id,
    /** Replaces the client secret and the private key. The next request uses the new credentials. */
    replaceCredentials(fresh: Pick<Config['platform'], 'clientSecret' | 'clientKey' | 'clientKeyId'>): void {
      const freshKey = signingKeyOf(fresh)
      if (fresh.clientSecret !== clientSecret || !isSameKey(freshKey, signingKey)) id = randomId()
      clientSecret = fresh.clientSecret
      signingKey = freshKey
      basicCredentials = undefined
    }
  }
}

/**
 * Returns the parameters with which a client authenticates with its private key (RFC 7523 sections 2.2 and 3, OpenID
 * Connect Core section 9). The first call loads the package jose, so a server without a client key never loads it.
 * @param audience the recipient, which is the issuer of the provider
 * @param now the clock, in milliseconds since the epoch
 */
async function clientAssertion(
  { key, algorithm, keyId }: SigningKey,
  clientId: string,
  audience: string,
  now: () => number
): Promise<Record<string, string>> {
  const { SignJWT } = await import('jose')
  const issuedAt = Math.floor(now() / 1000)
  const assertion = await new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ASSERTION_LIFETIME_SECONDS)
    .sign(key)
  return { client_id: clientId, client_assertion_type: ASSERTION_TYPE, client_assertion: assertion }
}

function isSameKey(one: SigningKey | undefined, other: SigningKey | undefined): boolean {
  if (!one || !other) return one === other
  return one.keyId === other.keyId && one.key.equals(other.key)
}

function randomId(): string {
  return randomBytes(6).toString('base64url')
}

/** Encodes a string as application/x-www-form-urlencoded (RFC 6749 appendix B). */
function formEncoded(value: string): string {
  return new URLSearchParams({ '': value }).toString().slice(1)
}
