import type { ProviderMetadata } from './metadata.js'

export interface EndSessionRequest {
  readonly clientId: string
  /**
   * The address to which the provider redirects the browser after the logout. It must be registered at the provider.
   */
  readonly postLogoutRedirectUri: string
  /** The ID token of the login, or undefined if the session does not contain it. */
  readonly idTokenHint: string | undefined
}

/**
 * Returns the address at which a browser signs out at the provider (OpenID Connect RP-Initiated Logout section 2), or
 * undefined if the provider has no end-session endpoint.
 */
export function endSessionUrl(metadata: ProviderMetadata, request: EndSessionRequest): string | undefined {
  if (metadata.endSessionEndpoint === undefined) return undefined
  const url = new URL(metadata.endSessionEndpoint)
  url.searchParams.set('post_logout_redirect_uri', request.postLogoutRedirectUri)
  if (metadata.quirks.logsOutWithoutHint) return url.href
  url.searchParams.set('client_id', request.clientId)
  if (request.idTokenHint !== undefined) url.searchParams.set('id_token_hint', request.idTokenHint)
  return url.href
}
