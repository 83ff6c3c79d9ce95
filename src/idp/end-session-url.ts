import type { ProviderMetadata } from './metadata.js'

export interface EndSessionRequest {
  readonly clientId: string
  /** The address to return to after the logout. It must be registered at the provider. */
  readonly postLogoutRedirectUri: string
  /** The ID token of the login that ends. Undefined if the session has none. */
  readonly idTokenHint: string | undefined
}

/**
 * Returns the address that signs a browser out at the provider (OpenID Connect RP-Initiated Logout section 2), or
 * undefined if the provider has no such endpoint.
 */
export function endSessionUrl(metadata: ProviderMetadata, request: EndSessionRequest): string | undefined {
  if (metadata.endSessionEndpoint === undefined) return undefined
  const url = new URL(metadata.endSessionEndpoint)
  url.searchParams.set('post_logout_redirect_uri', request.postLogoutRedirectUri)
  // APS documents only the parameter above.
  if (metadata.isAps) return url.href
  url.searchParams.set('client_id', request.clientId)
  if (request.idTokenHint !== undefined) url.searchParams.set('id_token_hint', request.idTokenHint)
  return url.href
}
