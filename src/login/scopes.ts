/** Compares the scopes that a provider has granted with the scopes that this server has requested. */

import { readJwt } from '../provider/id-token.js'
import type { TokenSet } from '../provider/token-set.js'

type Granted = Pick<TokenSet, 'accessToken' | 'scope'>

// The scopes of OpenID Connect. They are not compared, because some providers omit them from the `scope` of a response and others
// (Keycloak) always add some of them.
const OPENID_SCOPES = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/**
 * Returns the granted scopes that were not requested. Some providers (Cognito) ignore the `scope` of a refresh and do not say so
 * in the response, so an access token that is a JWT is read as well. Its signature is not checked: what the token says can only
 * lead to a refusal, so a forged token gains nothing. A token that names no scopes has those that were requested (RFC 6749
 * section 5.1).
 */
export function excessScopes({ accessToken, scope = [] }: Granted, requested: readonly string[]): string[] {
  const granted = new Set([...scope, ...scopesOfJwt(accessToken)])
  return [...granted].filter(name => !OPENID_SCOPES.has(name) && !requested.some(one => isSameScope(name, one)))
}

/**
 * Returns the requested scopes that were not granted. The result is only logged, so the names are compared generously: without
 * case, by the last segment of a URL (Entra), and separated by commas too (GitHub). A response without `scope` has granted all
 * of them.
 */
export function missingScopes({ scope }: Pick<TokenSet, 'scope'>, requested: readonly string[]): string[] {
  return requested.filter(name => !OPENID_SCOPES.has(name) && !isGranted(scope, name))
}

/** Returns true if the response names its scopes, and none of them was requested. */
export function grantsNothing({ scope }: Pick<TokenSet, 'scope'>, requested: readonly string[]): boolean {
  // Some providers do not name the scopes of OpenID Connect, so a login that requests only these proves nothing.
  const others = requested.filter(name => !OPENID_SCOPES.has(name))
  return others.length > 0 && !requested.some(name => isGranted(scope, name))
}

function isGranted(scope: readonly string[] | undefined, name: string): boolean {
  return scope?.flatMap(names => names.split(',')).some(granted => shortName(granted) === shortName(name)) ?? true
}

function shortName(scope: string): string {
  const isUrl = /^[a-z][a-z\d+.-]*:\/\//i.test(scope)
  return ((isUrl && scope.split('/').filter(Boolean).at(-1)) || scope).toLowerCase()
}

/**
 * The names are compared byte for byte, because a scope that differs in any character may allow more. There is one exception:
 * Entra requests a scope as a URL, and returns only its last segment.
 */
function isSameScope(granted: string, requested: string): boolean {
  return granted === requested || (!granted.includes('/') && granted === lastSegmentOf(requested))
}

function lastSegmentOf(scope: string): string | undefined {
  return /^[a-z][a-z\d+.-]*:\/\/[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)$/i.exec(scope)?.[1]
}

/** Returns the scopes in the claims `scope` (RFC 9068 section 2.2.3) and `scp` (Entra, Okta) of a JWT, each a string or a list. */
function scopesOfJwt(accessToken: string): string[] {
  const { scope, scp } = readJwt(accessToken).claims ?? {}
  return [scope, scp].flat().flatMap(names => (typeof names === 'string' ? names.split(/\s+/).filter(Boolean) : []))
}

/**
 * Lists scopes for the log. The names come from the provider, so the list and each name are limited in length, and a part of one
 * of the `tokens`, which a faulty provider could send as a scope, is not shown.
 */
export function listScopes(names: readonly string[], tokens: readonly (string | undefined)[]): string {
  const isToken = (name: string) => name.length >= MIN_SECRET_LENGTH && tokens.some(token => token?.includes(name))
  const isShown = (name: string) => /^[!-~]{1,100}$/.test(name) && !isToken(name)
  const shown = names.filter(isShown).slice(0, MAX_LISTED)
  const others = names.length - shown.length
  return [...shown, ...(others > 0 ? [`${others} more`] : [])].join(', ')
}

const MAX_LISTED = 20
// A shorter name may be a part of a token by coincidence, and would reveal nothing.
const MIN_SECRET_LENGTH = 12
