import { createPublicKey, type JsonWebKey, randomBytes, verify } from 'node:crypto'
import type Koa from 'koa'
import type { AccessToken, ClientCredentials, JWTStructured } from 'oidc-provider'

/** The audience of the access tokens, which stands for the APIs of the platform. */
export const audience = 'https://platform.example'

/**
 * Gives an access token the same claims as on Autodesk Platform Services (the platform): `scope` as an array, `userid`
 * instead of `sub`, and a long `jti`. The token is then as long as a real token, so session cookies have a realistic
 * size.
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

/** Returns the bearer token of a request, or an empty text if it has none. */
export function bearerTokenOf(ctx: Koa.Context): string {
  return /^bearer ([\w.-]+)$/i.exec(ctx.get('Authorization'))?.[1] ?? ''
}

export interface AccessTokenReader {
  /** Returns the user id if this demo issued the access token and it has not expired. */
  userIdOf(accessToken: string): string | undefined
  /** Returns the scopes of an access token for which `userIdOf` returns a user id, and an empty list for any other text. */
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
    // Only this demo has the key, so a signed payload is always valid JSON. An ID token is signed too, but has no `userid`.
    const claims: Record<string, unknown> = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const { exp, userid } = claims
    return typeof exp === 'number' && exp * 1000 > now() && typeof userid === 'string' ? claims : undefined
  }

  return {
    userIdOf: accessToken => claimsOf(accessToken)?.userid as string | undefined,
    scopesOf: accessToken => (claimsOf(accessToken)?.scope as readonly string[] | undefined) ?? []
  }
}
