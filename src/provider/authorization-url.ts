/** The addresses at the identity provider to which a browser is sent for a login or a logout. */
import type { ProviderMetadata } from './metadata.js'

export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly scope: string
  readonly state: string
  readonly nonce: string | undefined
  readonly prompt: string | undefined
  /** The S256 code challenge (RFC 7636 section 4.2), or undefined if PKCE is disabled. */
  readonly codeChallenge: string | undefined
}

/**
 * Returns the address that starts a login at the identity provider (RFC 6749 section 4.1.1). The order of the
 * parameters is that of the SDK of Autodesk Platform Services.
 */
export function authorizationUrl(metadata: ProviderMetadata, request: AuthorizationRequest): string {
  const url = new URL(metadata.authorizationEndpoint)
  const add = (name: string, value: string | undefined) => value !== undefined && url.searchParams.append(name, value)
  add('client_id', request.clientId)
  add('response_type', 'code')
  add('redirect_uri', request.redirectUri)
  add('nonce', request.nonce)
  add('state', request.state)
  add('scope', request.scope)
  add('prompt', request.prompt)
  add('code_challenge', request.codeChallenge)
  add('code_challenge_method', request.codeChallenge && 'S256')
  return url.href
}

/**
 * Returns the address at which a browser signs out at the provider (OpenID Connect RP-Initiated Logout section 2), or
 * undefined if the provider has no end-session endpoint.
 * @param returnUri the address to which the provider redirects the browser after the logout. It must be registered at
 *   the provider.
 * @param idTokenHint the ID token of the login, or undefined if the session does not contain it
 */
export function endSessionUrl(
  metadata: ProviderMetadata,
  clientId: string,
  returnUri: string,
  idTokenHint: string | undefined
): string | undefined {
  if (metadata.endSessionEndpoint === undefined) return undefined
  const url = new URL(metadata.endSessionEndpoint)
  url.searchParams.set('post_logout_redirect_uri', returnUri)
  if (metadata.quirks.logsOutWithoutHint) return url.href
  url.searchParams.set('client_id', clientId)
  if (idTokenHint !== undefined) url.searchParams.set('id_token_hint', idTokenHint)
  return url.href
}
