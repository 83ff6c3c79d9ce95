import type { ProviderMetadata } from './metadata.js'

export interface EndSessionRequest {
  readonly clientId: string
  /** One of the addresses that are registered at the provider for the way back. */
  readonly postLogoutRedirectUri: string
  /** Tells the provider whose login ends; undefined when none was kept. */
  readonly idTokenHint: string | undefined
}

/**
 * Returns the address that signs a browser out at the provider (OpenID Connect RP-Initiated Logout section 2), or
 * undefined where the provider has none.
 */
export function endSessionUrl(metadata: ProviderMetadata, request: EndSessionRequest): string | undefined {
  if (metadata.endSessionEndpoint === undefined) return undefined
  const url = new URL(metadata.endSessionEndpoint)
  url.searchParams.set('post_logout_redirect_uri', request.postLogoutRedirectUri)
  // APS documents no other parameter than the one above.
  if (metadata.isAps) return url.href
  url.searchParams.set('client_id', request.clientId)
  if (request.idTokenHint !== undefined) url.searchParams.set('id_token_hint', request.idTokenHint)
  return url.href
}
