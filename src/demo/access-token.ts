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

export type AccessTokenReader = ReturnType<typeof createAccessTokenReader>

/** Creates functions that read the access token of a request. */
export function createAccessTokenReader(signingKey: JsonWebKey, now: () => number) {
  const key = createPublicKey({ key: signingKey, format: 'jwk' })
  function claimsOf(ctx: Koa.Context): Record<string, unknown> | undefined {
    const token = /^bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/i.exec(ctx.get('Authorization'))
    const [, header, payload, signature] = token ?? []
    if (!header || !payload || !signature) return undefined
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
      return undefined
    // Only this demo has the key, so a signed payload is always valid JSON. An ID token is signed too, but has no `userid`.
    const claims: Record<string, unknown> = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const { exp, userid } = claims
    return typeof exp === 'number' && exp * 1000 > now() && typeof userid === 'string' ? claims : undefined
  }

  return {
    /** Returns the user id if this demo issued the access token and it has not expired. */
    userIdOf: (ctx: Koa.Context) => claimsOf(ctx)?.userid as string | undefined,
    /** Returns the scopes of an access token for which `userIdOf` returns a user id, and otherwise an empty list. */
    scopesOf: (ctx: Koa.Context) => (claimsOf(ctx)?.scope as readonly string[] | undefined) ?? []
  }
}
