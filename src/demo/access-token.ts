import { createPublicKey, type JsonWebKey, randomBytes, verify } from 'node:crypto'
import type { AccessToken, ClientCredentials, JWTStructured } from 'oidc-provider'

/** Whom the access tokens are for: the platform's interfaces, of which there are none here. */
export const audience = 'https://platform.example'

/**
 * Gives an access token the claims that the platform's tokens have, in its spelling: `scope` as an array, `userid`
 * instead of `sub`, a long `jti`. Size and look are what a server in front of them must cope with.
 */
export function platformClaims(token: AccessToken | ClientCredentials, parts: JWTStructured, now: () => number): void {
  const issuedAt = Math.floor(now() / 1000)
  parts.payload = {
    scope: token.scope?.split(' ') ?? [],
    client_id: token.clientId,
    iss: parts.payload.iss,
    aud: audience,
    jti: randomBytes(48).toString('base64url'),
    userid: 'accountId' in token ? token.accountId : undefined,
    iat: issuedAt,
    exp: issuedAt + token.expiration
  }
}

export interface AccessTokenReader {
  /** The user's id if this is an access token of ours that has not expired. */
  userIdOf(accessToken: string): string | undefined
  /** The scopes of such a token; none if it is not one. */
  scopesOf(accessToken: string): readonly string[]
}

export function createAccessTokenReader(signingKey: JsonWebKey, now: () => number): AccessTokenReader {
  const key = createPublicKey({ key: signingKey, format: 'jwk' })
  function claimsOf(accessToken: string): Record<string, unknown> | undefined {
    const parts = accessToken.split('.')
    const [header, payload, signature] = parts
    if (parts.length !== 3 || !header || !payload || !signature) return undefined
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return undefined
    // The key was made for this demo, so everything it signed is JSON of ours. An ID token is too, but it has no `userid`.
    const claims: Record<string, unknown> = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const { exp, userid } = claims
    return typeof exp === 'number' && exp * 1000 > now() && typeof userid === 'string' ? claims : undefined
  }

  return {
    userIdOf: accessToken => claimsOf(accessToken)?.userid as string | undefined,
    scopesOf: accessToken => (claimsOf(accessToken)?.scope as readonly string[] | undefined) ?? []
  }
}
