/**
 * The token requests of a login and a refresh, and the checks of their responses, which single mode and dual mode share.
 */

import type { CompleteSession, HalfRefreshedSession, Identity } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { checkIdToken, checkRefreshedIdToken, type IdTokenClaims, isIdentifier } from '../provider/id-token.js'
import { ProviderError, unusableTokens } from '../provider/provider-error.js'
import type { TokenSet } from '../provider/token-set.js'
import type { CheckedClaims } from './access.js'
import { grantsNothing, missingScopes } from './scopes.js'

export interface ModeDependencies {
  readonly idp: IdentityProvider
  readonly clientId: string
  /** True if sessions must contain the ID token, because a logout sends it to the provider. */
  readonly keepsIdToken: boolean
  /** True if sessions must contain the `sid` of the ID token, because back-channel logout needs it. */
  readonly keepsSid?: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Gets the reason why the ID token of a refresh proves nothing. It is ignored then. */
  readonly onIgnoredIdToken?: (error: ProviderError) => void
}

/** An access token for handlers and pages. */
export interface TokenObject {
  readonly access_token: string
  /** The remaining lifetime at the time of the request, in whole seconds. */
  readonly expires_in: number
}

export interface AuthorizationCode {
  readonly code: string
  readonly codeVerifier: string
  readonly nonce: string
  /** The time limit of the token request, in milliseconds. */
  readonly timeoutMs: number
}

/**
 * The tokens of a session before, during or after a login or a refresh. A half-refreshed session (dual mode) has a new internal
 * token, and needs a second token request for the public token. Until `internalExpiresAt`, the first request need not be
 * repeated.
 */
export type TokenState =
  | Pick<CompleteSession, 'kind' | 'fields' | 'identity'>
  | Pick<HalfRefreshedSession, 'kind' | 'fields' | 'identity' | 'internalExpiresAt'>

/** Returns the display name of a user from claims, or an empty string. */
type DisplayName = (claims: IdTokenClaims) => string

/**
 * Exchanges an authorization code for tokens, and checks their scopes and the ID token.
 * @returns the tokens, the requested scopes that were not granted, and the checked claims of the ID token. If `openid` was not
 *   requested, there are no claims and no identity
 * @throws OAuthError or ProviderError
 */
export async function codeGrant(
  dependencies: ModeDependencies,
  grant: AuthorizationCode,
  { scopes, displayName }: { readonly scopes: readonly string[]; readonly displayName: DisplayName }
) {
  const { idp } = dependencies
  let refreshToken: string | undefined
  try {
    const tokenSet = await idp.authorizationCodeGrant(grant)
    refreshToken = tokenSet.refreshToken
    if (refreshToken === undefined) throw unusableTokens('it issued no refresh_token')
    if (grantsNothing(tokenSet, scopes)) {
      throw unusableTokens('it granted none of the requested scopes', { reason: 'consent_required' })
    }
    const { idToken } = tokenSet
    const claims = scopes.includes('openid') ? checkedClaimsOf(dependencies, idToken, grant.nonce) : undefined
    const signedIn = claims && identityOf(dependencies, claims, displayName)
    const identity = signedIn && (await withNewestHint(dependencies, signedIn, idToken))
    const scopesMissing = missingScopes(tokenSet, scopes)
    return { ...granted(dependencies, tokenSet), refreshToken, identity, claims, scopesMissing }
  } catch (error) {
    const unused = refreshToken ?? ProviderError.refreshTokenOf(error)
    if (unused !== undefined) revokeInBackground(idp, unused)
    throw error
  }
}

/** Revokes a refresh token that no session will use. Ignores errors. */
export function revokeInBackground(idp: Pick<IdentityProvider, 'revokeRefreshToken'>, refreshToken: string): void {
  idp.revokeRefreshToken(refreshToken).catch(() => {})
}

/**
 * Requests an access token with the refresh token of a session, and checks the ID token of the response.
 * @returns the tokens, of which the refresh token is the one to use next, and the claims of the ID token, if one was checked
 * @throws OAuthError or ProviderError
 */
export async function refreshGrant(
  dependencies: ModeDependencies,
  { fields, identity }: TokenState,
  scope: string | undefined,
  timeoutMs: number
) {
  const usedToken = fields.refresh_token
  const tokenSet = await dependencies.idp.refreshTokenGrant({ refreshToken: usedToken, scope, timeoutMs })
  const claims = checkRefreshedIdentity(dependencies, tokenSet, identity, usedToken)
  const newest = claims && identity && (await withNewestHint(dependencies, identity, tokenSet.idToken))
  const refreshToken = tokenSet.refreshToken ?? usedToken
  return { ...granted(dependencies, tokenSet), claims, identity: newest ?? identity, refreshToken }
}

export type RefreshedTokenSet = Awaited<ReturnType<typeof refreshGrant>>

/** @returns the access token with its expiry, in milliseconds since the epoch, and what is checked with it */
function granted({ now }: ModeDependencies, { accessToken, scope, idToken, expiresIn }: TokenSet) {
  return { accessToken, scope, idToken, expiresAt: Math.round(now() + expiresIn * 1000) }
}

/**
 * Adds the checked ID token of a response, which a logout sends to the provider. That of a refresh replaces that of the login,
 * because the provider may no longer accept a hint that an earlier key signed. Keeps the earlier ID token if the new one is too long
 * for a logout URL.
 */
async function withNewestHint(
  { idp, keepsIdToken }: ModeDependencies,
  identity: Identity,
  idToken: string | undefined
): Promise<Identity> {
  if (!keepsIdToken || idToken === undefined || !(await idp.takesLogoutHint(idToken))) return identity
  return { ...identity, idToken }
}

/**
 * Checks that the ID token in the response to a refresh is about the user who signed in. Does nothing if the response has no ID
 * token or if the session has no identity. If the ID token is about another user, revokes the refresh token of the response. If
 * the response has no refresh token, revokes the refresh token that was sent.
 */
function checkRefreshedIdentity(
  { idp, clientId, onIgnoredIdToken = () => {} }: ModeDependencies,
  { idToken, refreshToken }: TokenSet,
  identity: Identity | undefined,
  usedToken: string
): CheckedClaims | undefined {
  if (!identity || idToken === undefined) return undefined
  try {
    return checkRefreshedIdToken(idToken, identity, clientId)
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    if (error.reason === 'identity_mismatch') {
      revokeInBackground(idp, refreshToken ?? usedToken)
      throw error
    }
    // OpenID Connect Core section 12.2: a refresh needs no ID token, so the user of the login stays signed in.
    onIgnoredIdToken(error)
    return undefined
  }
}

function checkedClaimsOf({ idp, clientId, now }: ModeDependencies, idToken: string | undefined, nonce: string) {
  // OpenID Connect Core section 3.1.3.3 requires an ID token if `openid` was requested.
  if (idToken === undefined) throw unusableTokens('it issued no id_token, although openid was requested')
  return checkIdToken(idToken, { nonce, clientId, issuer: idp.issuer, now: now() })
}

function identityOf({ keepsSid }: ModeDependencies, claims: IdTokenClaims, displayName: DisplayName): Identity {
  const name = displayName(claims).slice(0, MAX_ID_TOKEN_NAME_LENGTH)
  return {
    iss: claims.iss,
    sub: claims.sub,
    ...(keepsSid && isIdentifier(claims.sid) && { sid: claims.sid }),
    ...(keepsSid && { signedIn: signedInOf(claims) }),
    ...(name !== claims.sub && { name })
  }
}

function signedInOf({ iat, auth_time }: IdTokenClaims): NonNullable<Identity['signedIn']> {
  return { iat, ...(typeof auth_time === 'number' && { authTime: auth_time }) }
}

// The name in the ID token is part of the session cookie, so it must be shorter than that of the user info.
const MAX_ID_TOKEN_NAME_LENGTH = 100

/** Creates the token object that handlers and pages get. */
export function tokenObject(accessToken: string | undefined, expiresAt: number | undefined, now: number): TokenObject {
  return { access_token: accessToken ?? '', expires_in: Math.max(0, Math.round(((expiresAt ?? 0) - now) / 1000)) }
}
