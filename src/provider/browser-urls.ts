/** The URLs of the identity provider that a browser opens: for a login and for the logout at the provider. */
import { systemClock, withinOrUndefined } from '../base/clock.js'
import type { Config } from '../config/settings.js'
import { homeUrlOf } from '../config/types/urls.js'
import { type GetEndpoint, issuerOf } from './metadata.js'
import { quirksOf } from './quirks.js'

export interface AuthorizationRequest {
  readonly scope: string
  readonly state: string
  /** Is sent only with the scope `openid`. */
  readonly nonce: string
  /** Replaces the `prompt` of `platform.authorizationParams`, unless it is undefined. */
  readonly prompt?: string | undefined
  /** The S256 code challenge (RFC 7636 section 4.2). Is sent only with the setting `platform.pkce`. */
  readonly codeChallenge: string
}

// Entra and many proxies refuse longer URLs. An ID token with many groups alone can have 10,000 characters.
const MAX_LOGOUT_URL_LENGTH = 2000

export function createBrowserUrls(platform: Config['platform'], endpoint: GetEndpoint) {
  const { clientId, callbackUrl: redirectUri } = platform
  const issuer = issuerOf(platform)

  /**
   * Returns the URL that a browser opens to sign out at the provider (OpenID Connect RP-Initiated Logout section 2). The provider
   * then redirects the browser to the start page. Returns undefined if the provider has no end-session endpoint.
   * @param idTokenHint the newest ID token of the session. It is left out if the URL would be too long.
   */
  async function endSessionUrl(idTokenHint?: string): Promise<string | undefined> {
    const endSessionEndpoint = await endpoint('endSessionEndpoint')
    if (endSessionEndpoint === undefined) return undefined
    const url = new URL(endSessionEndpoint)
    url.searchParams.set('post_logout_redirect_uri', homeUrlOf(redirectUri))
    const tokenEndpoint = await endpoint('tokenEndpoint').catch(() => undefined)
    const { logsOutWithoutHint } = quirksOf({ issuer, ...(tokenEndpoint !== undefined && { tokenEndpoint }) })
    if (!logsOutWithoutHint) url.searchParams.set('client_id', clientId)
    addParams(url, platform.logoutParams)
    if (logsOutWithoutHint || idTokenHint === undefined) return url.href
    const withHint = new URL(url)
    withHint.searchParams.set('id_token_hint', idTokenHint)
    return withHint.href.length > MAX_LOGOUT_URL_LENGTH ? url.href : withHint.href
  }

  return {
    /** Returns the URL at the provider to which the server redirects the browser for a login (RFC 6749 section 4.1.1). */
    async authorizationUrl(request: AuthorizationRequest): Promise<string> {
      const { nonce, state, scope, prompt, codeChallenge } = request
      const url = new URL(await endpoint('authorizationEndpoint'))
      // The parameters have the same order as in the SDK of Autodesk Platform Services.
      const parameters = {
        client_id: clientId,
        response_type: 'code',
        redirect_uri: redirectUri,
        nonce: scope.split(' ').includes('openid') ? nonce : undefined,
        state,
        scope: scope === '' ? undefined : scope,
        code_challenge: platform.pkce ? codeChallenge : undefined,
        code_challenge_method: platform.pkce ? 'S256' : undefined
      }
      for (const [name, value] of Object.entries(parameters)) {
        if (value !== undefined) url.searchParams.append(name, value)
      }
      addParams(url, platform.authorizationParams)
      if (prompt !== undefined) url.searchParams.set('prompt', prompt)
      return url.href
    },
    endSessionUrl,
    /**
     * True if a logout can send this ID token as a hint, so that the session should keep it. If the end-session endpoint is unknown
     * at the moment, the token may be needed later. Does not wait for discovery, because the refresh token that came with the ID
     * token is not stored yet.
     */
    async takesLogoutHint(idToken: string): Promise<boolean> {
      const found = endpoint('endSessionEndpoint').then(
        url => ({ url }),
        () => undefined
      )
      const known = await withinOrUndefined(0, found, systemClock)
      if (!known) return idToken.length < MAX_LOGOUT_URL_LENGTH
      const url = known.url && (await endSessionUrl(idToken))
      return url !== undefined && new URL(url).searchParams.has('id_token_hint')
    }
  }
}

/** Adds the parameters of the operator. A parameter that the URL of the endpoint already has keeps its value. */
function addParams(url: URL, params: Readonly<Record<string, string>> = {}): void {
  for (const [name, value] of Object.entries(params)) {
    if (!url.searchParams.has(name)) url.searchParams.append(name, value)
  }
}
