/** What both modes do with a token set: check what was granted, and work out when it ends. */
import type { IdentityProvider } from '../idp/client.js'
import { UpstreamError } from '../idp/errors.js'
import { checkIdToken } from '../idp/id-token.js'
import type { TokenSet } from '../idp/token-set.js'
import type { CodeGrant, TokenObject } from './mode.js'

export interface ModeParts {
  readonly idp: IdentityProvider
  readonly clientId: string
  readonly pkce: boolean
  readonly now: () => number
}

export interface FirstTokenSet extends TokenSet {
  readonly refreshToken: string
}

// Providers name these as they like in `scope`, or leave them out; no request of ours depends on them.
const OPENID_SCOPES = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/** The code exchange of both modes: the first token set of a login. Throws OAuthError or UpstreamError. */
export async function redeemCode(
  parts: ModeParts,
  grant: CodeGrant,
  scopes: readonly string[]
): Promise<FirstTokenSet> {
  const { idp, pkce } = parts
  const { code, codeVerifier, nonce } = grant
  const tokenSet = await idp.authorizationCodeGrant({ code, codeVerifier: pkce ? codeVerifier : undefined })
  const { refreshToken } = tokenSet
  if (refreshToken === undefined) throw new UpstreamError('token', 'unusable', 'it issued no refresh_token')
  try {
    await checkGrant(parts, tokenSet, nonce, scopes)
  } catch (error) {
    abandon(idp, refreshToken)
    throw error
  }
  return { ...tokenSet, refreshToken }
}

/** Nobody will ever use this login; what it was given must not lie about. It may fail as the rest just did. */
export function abandon(idp: Pick<IdentityProvider, 'revokeRefreshToken'>, refreshToken: string): void {
  idp.revokeRefreshToken(refreshToken).catch(() => {})
}

async function checkGrant(
  { idp, clientId, now }: ModeParts,
  { scope, idToken }: TokenSet,
  nonce: string,
  scopes: readonly string[]
) {
  const missing = scopes.filter(name => scope && !scope.includes(name) && !OPENID_SCOPES.has(name))
  if (missing.length > 0) {
    throw new UpstreamError('token', 'unusable', `it did not grant the scope ${missing.join(' ')}`)
  }
  if (idToken !== undefined && scopes.includes('openid')) {
    const { issuer } = await idp.metadata()
    checkIdToken(idToken, { nonce, clientId, issuer, now: now() })
  }
}

/** Milliseconds since the epoch (contract section 2.1). */
export function expiresAt(tokenSet: TokenSet, now: number): number {
  return Math.round(now + tokenSet.expiresIn * 1000)
}

/** Contract section 2.3; the session is one that the mode wrote, so that both are there. */
export function tokenObject(accessToken: string | undefined, expiresAt: number | undefined, now: number): TokenObject {
  return { access_token: accessToken ?? '', expires_in: Math.max(0, Math.round(((expiresAt ?? 0) - now) / 1000)) }
}
