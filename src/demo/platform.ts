/**
 * The properties of Autodesk Platform Services (the platform) that the demo imitates: its paths, scopes and access
 * tokens.
 */
import { generateKeyPair, type JsonWebKey, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { AccessToken, ClientCredentials, JWTStructured } from 'oidc-provider'

/**
 * The paths of the endpoints. They are those of the platform, but the platform's user info endpoint is on a different
 * host.
 */
export const paths = {
  authorization: '/authentication/v2/authorize',
  token: '/authentication/v2/token',
  revocation: '/authentication/v2/revoke',
  endSession: '/authentication/v2/logout',
  jwks: '/authentication/v2/keys',
  userInfo: '/userinfo',
  signIn: '/sign-in'
} as const

/** The scopes that an application can request from the platform. */
export const platformScopes: readonly string[] = [
  'openid',
  'user-profile:read',
  'user:read',
  'user:write',
  'viewables:read',
  'data:read',
  'data:write',
  'data:create',
  'data:search',
  'bucket:create',
  'bucket:read',
  'bucket:update',
  'bucket:delete',
  'code:all',
  'account:read',
  'account:write',
  'application:service_account:read',
  'application:service_account:write'
]

const knownScopes: ReadonlySet<string> = new Set(platformScopes)

/**
 * A scope `data:read:<URN>` permits reading one resource. An application can request many of these scopes, so its
 * tokens can become long.
 */
const resourceScope = /^data:read:[!#-[\]-~]+$/

export function isKnownScope(scope: string): boolean {
  return knownScopes.has(scope) || resourceScope.test(scope)
}

export function splitScope(scope: unknown): string[] {
  return typeof scope === 'string' ? scope.split(' ').filter(Boolean) : []
}

/** The audience of the access tokens, which stands for the APIs of the platform. */
export const audience = 'https://platform.example'

/**
 * Gives an access token the same claims as on the platform: `scope` as an array, `userid` instead of `sub`, and a long
 * `jti`. The token is then as long as a real token, so session cookies have a realistic size.
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

/** Creates the key pair with which the demo signs ID tokens and access tokens. The JWK contains the private key. */
export async function createSigningKey(): Promise<JsonWebKey> {
  // The key pair is generated as JWK. On Node 20, exporting a key to JWK later can deadlock with the garbage collector.
  const encoding = { format: 'jwk' }
  const options = { modulusLength: 2048, publicKeyEncoding: encoding, privateKeyEncoding: encoding }
  const generate = promisify(generateKeyPair) as (type: 'rsa', options: object) => Promise<{ privateKey: object }>
  const { privateKey } = await generate('rsa', options)
  const kid = randomBytes(32).toString('base64url')
  return { ...privateKey, kid, alg: 'RS256', use: 'sig' }
}
