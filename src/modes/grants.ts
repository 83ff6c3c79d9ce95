/** Steps that both modes share: exchange the code, check what was granted, and compute the expiry. */
import { setTimeout } from 'node:timers/promises'
import type { IdentityProvider } from '../idp/client.js'
import { rescuedRefreshToken, UpstreamError } from '../idp/errors.js'
import { checkIdToken } from '../idp/id-token.js'
import type { TokenSet } from '../idp/token-set.js'
import type { CodeGrant, TokenObject } from './mode.js'

export interface ModeParts {
  readonly idp: IdentityProvider
  readonly clientId: string
  readonly pkce: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Resolves after so many milliseconds; a real timer unless given. */
  readonly wait?: ((ms: number) => Promise<unknown>) | undefined
}

export interface FirstTokenSet extends TokenSet {
  readonly refreshToken: string
}

// Providers spell these differently in `scope` or omit them. None of our requests depends on them.
const OPENID_SCOPES = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/** The code exchange of both modes: the first token set of a login. Throws OAuthError or UpstreamError. */
export async function redeemCode(
  parts: ModeParts,
  grant: CodeGrant,
  scopes: readonly string[]
): Promise<FirstTokenSet> {
  const { idp, pkce } = parts
  const { code, codeVerifier, nonce, timeoutMs } = grant

  async function exchange(request: Parameters<IdentityProvider['authorizationCodeGrant']>[0]) {
    try {
      return await idp.authorizationCodeGrant({ ...request, timeoutMs })
    } catch (error) {
      const refreshToken = rescuedRefreshToken(error)
      if (refreshToken !== undefined) abandon(idp, refreshToken)
      throw error
    }
  }

  const tokenSet = await exchange({ code, codeVerifier: pkce ? codeVerifier : undefined })
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

/** Revokes the refresh token of an abandoned login. Best effort. */
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

// The person who signs in waits for this response.
const LONGEST_WAIT_SECONDS = 10

/**
 * Makes a call to the provider, and repeats it once if the provider is busy and names a `Retry-After` of at most 10
 * seconds (RFC 9110 section 10.2.3). Rejects with the error of the last attempt.
 * @param wait resolves after so many milliseconds
 */
export async function repeatOnceIfBusy<T>(
  call: () => Promise<T>,
  wait: NonNullable<ModeParts['wait']> = setTimeout
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const seconds = error instanceof UpstreamError && error.isBusy ? error.retryAfterSeconds : undefined
    if (seconds === undefined || seconds > LONGEST_WAIT_SECONDS) throw error
    await wait(seconds * 1000)
    return call()
  }
}

/** Milliseconds since the epoch (contract section 2.1). */
export function expiresAt(tokenSet: TokenSet, now: number): number {
  return Math.round(now + tokenSet.expiresIn * 1000)
}

/** The token object of contract section 2.3. Both arguments are defined, since the mode wrote the session itself. */
export function tokenObject(accessToken: string | undefined, expiresAt: number | undefined, now: number): TokenObject {
  return { access_token: accessToken ?? '', expires_in: Math.max(0, Math.round(((expiresAt ?? 0) - now) / 1000)) }
}
