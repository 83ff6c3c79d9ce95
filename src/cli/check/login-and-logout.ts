import { randomBytes } from 'node:crypto'
import { homeUrlOf } from '../../config/types/urls.js'
import { s256 } from '../../login/transaction.js'
import { gatewayCodeOf, isErrorCode } from '../../provider/meaning.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import { type Endpoint, OAuthError, ProviderError } from '../../provider/provider-error.js'
import { NO_ACCESS_CODE } from '../../provider/quirks.js'
import type { Transport } from '../../provider/transport.js'
import { findingOfStatus, hasNoAccess, noAccess, requestTo, webApplicationAdvice } from './endpoint-errors.js'
import type { Provider } from './endpoints-and-clock.js'
import { type Finding, failed, ok, type Texts, textFor, warning } from './findings.js'

// These errors mean that the user must sign in or consent, so the provider has accepted the request itself.
const NEEDS_INTERACTION = /^(login|interaction|consent|account_selection)_required$/

const remedies: Texts = {
  '^invalid_scope$': 'Next: Request only scopes that the provider knows and the application may use.',
  '^(unauthorized_client|unsupported_response_type)$': webApplicationAdvice,
  '^invalid_request$': 'Next: If the provider does not support PKCE, set platform.pkce to false.',
  '^': "Next: Look for this code in the provider's documentation."
}

/** Opens the login page like a browser that has no cookies yet, and reports if the provider accepts the request. */
export async function checkLogin(provider: Provider, metadata: ProviderMetadata): Promise<Finding> {
  const { config, idp, mode, transport } = provider
  const { clientId, callbackUrl } = config.platform
  const random = () => randomBytes(32).toString('base64url')
  const loginUrl = await idp.authorizationUrl({
    scope: mode.loginScope,
    state: random(),
    nonce: random(),
    codeChallenge: s256(random())
  })
  const { firstStatus, status, error, url, gatewayCode } = await followRedirects(transport, 'authorization', loginUrl)
  const rejection = 'The authorization endpoint rejects the client or the callback URL'
  const register = `Next: Register exactly ${callbackUrl} for the client ${clientId}.`
  if (error !== undefined && !NEEDS_INTERACTION.test(error)) {
    // The provider sends an error to the callback URL only if the client and this URL are valid (RFC 6749 section
    // 4.1.2.1).
    if (!isSamePage(url, callbackUrl)) return failed`${rejection}: ${error}. ${register}`
    return failed`The authorization endpoint rejects this login: ${error}. ${textFor(error, remedies)}`
  }
  const request = requestTo('authorization', config, metadata)
  if (gatewayCode === NO_ACCESS_CODE) return noAccess(request)
  if (firstStatus < 300)
    return ok`The authorization endpoint responds with a page (${status}). Open it in a browser to see if it is the login page.`
  if (status < 400) return ok`The authorization endpoint accepts this login (${firstStatus}).`
  // Dex responds with 404 to an unknown client. If the URL comes from the discovery document, it is right, so the 404 is
  // about the client.
  const isDiscovered = request.setting === 'platform.issuer'
  if (status === 400 || status === 401 || (status === 404 && isDiscovered))
    return failed`${rejection} (${status}). ${register}`
  if (status !== 403) return findingOfStatus(status, request)
  return warning`The authorization endpoint responds with 403. It rejects either this login or all requests that do not come from a browser. Next: Open the login in a browser. If it fails there too, check the callback URL.`
}

function isSamePage(url: string, other: string): boolean {
  const [one, two] = [new URL(url), new URL(other)]
  return one.origin === two.origin && one.pathname === two.pathname
}

/** Tests the endpoints that the settings `logout.…` need. */
export async function checkLogout(provider: Provider, metadata: ProviderMetadata): Promise<Finding[]> {
  const { revoke, idp } = provider.config.logout
  if (!revoke && !idp)
    return [ok`A logout ends only the session of this server. The server does not inform the provider.`]
  const checks = [...(revoke ? [checkRevocation] : []), ...(idp ? [checkIdpLogout] : [])]
  return Promise.all(checks.map(check => check(provider, metadata)))
}

/** Revokes a made-up token, which must succeed (RFC 7009 section 2.2). */
async function checkRevocation({ config, idp }: Provider, { revocationEndpoint }: ProviderMetadata): Promise<Finding> {
  if (config.platform.revocationEndpoint === 'none')
    return ok`Revocation is switched off, so refresh tokens stay valid after a logout.`
  if (revocationEndpoint === undefined)
    return warning`The discovery document has no usable revocation endpoint, so refresh tokens stay valid after a logout. Next: Set platform.revocationEndpoint, or set logout.revoke to false.`
  try {
    await idp.revokeRefreshToken('made-up-by-check')
    return ok`The revocation endpoint accepts requests.`
  } catch (error) {
    if (hasNoAccess(error)) throw error
    if (error instanceof OAuthError && (error.status === 401 || error.error === 'invalid_client'))
      return failed`The revocation endpoint rejects the client (${error.status} ${error.error}). Next: Fix the client finding first. If the client finding is ok, set logout.revoke to false.`
    if (!(error instanceof ProviderError) || error.status !== 400) throw error
    // Some providers reject a made-up token, although RFC 7009 section 2.2 requires success.
    const code = error instanceof OAuthError ? ` ${error.error}` : ''
    return warning`The revocation endpoint rejects a made-up token (400${code}), so this check cannot tell if it accepts a real one. Next: Sign in and out once, and look for revocation_failed in the log.`
  }
}

/** Opens the end-session endpoint like the browser of a user who is not signed in at the provider. */
async function checkIdpLogout({ config, idp, transport }: Provider, metadata: ProviderMetadata): Promise<Finding> {
  const homeUrl = homeUrlOf(config.platform.callbackUrl)
  const logoutUrl = metadata.endSessionEndpoint && (await idp.endSessionUrl())
  if (!logoutUrl)
    return failed`The discovery document has no usable end-session endpoint, so a logout does not sign out at the provider. Next: Set platform.endSessionEndpoint, or set logout.idp to false.`
  if (metadata.quirks.needsLogoutUri && !new URL(logoutUrl).searchParams.has('logout_uri'))
    return failed`${metadata.quirks.name} requires the parameter logout_uri at a logout, so users see its error page. Next: Set platform.logoutParams to logout_uri=${homeUrl}, and register this URL as an allowed sign-out URL.`
  const register = `Next: Register ${homeUrl} with the provider as a URL to return to after logout.`
  const { status, error } = await followRedirects(transport, 'end_session', logoutUrl)
  if (error !== undefined)
    return warning`The end-session endpoint rejects a logout without an ID token: ${error}. ${register} If it is registered, sign in and out once, because some providers require the ID token.`
  if (status < 400)
    return ok`The end-session endpoint responds (${status}). ${homeUrl} must be registered as a URL to return to.`
  if (status === 400) return failed`The end-session endpoint rejects the request (400). ${register}`
  return findingOfStatus(status, requestTo('end_session', config, metadata))
}

const MAX_REDIRECTS = 10

/**
 * Opens a page of the provider like a browser that has no cookies yet. Follows redirects within one origin, until a
 * redirect has an error code or leads to a different origin. Returns the statuses of the first and of the last response, the URL and the
 * error code of the redirect that has one, and the code of the gateway in front of Autodesk Platform Services.
 * @throws ProviderError if the provider cannot be reached or redirects too often
 */
async function followRedirects(transport: Transport, endpoint: Endpoint, startUrl: string) {
  const { origin } = new URL(startUrl)
  const cookies = new Map<string, string>()
  let url = startUrl
  let firstStatus: number | undefined
  for (let redirects = 0; ; redirects++) {
    const cookie = [...cookies].map(pair => pair.join('=')).join('; ')
    const headers = { accept: 'text/html', ...(cookie !== '' && { cookie }) }
    const { status, location, setCookies, json } = await transport.call({ endpoint, url, headers })
    firstStatus ??= status
    // All requests go to one origin and end within seconds, so the attributes of a cookie can be ignored.
    for (const line of setCookies) {
      const [, name = '', value = ''] = /^\s*([^=;]+)=([^;]*)/.exec(line) ?? []
      if (name !== '') cookies.set(name.trim(), value)
    }
    const isRedirect = status >= 300 && status < 400 && location !== undefined && URL.canParse(location, url)
    if (!isRedirect) return { firstStatus, status, error: undefined, url, gatewayCode: gatewayCodeOf(json) }
    const target = new URL(location, url)
    const code = target.searchParams.get('error')
    if (code !== null) {
      const error = isErrorCode(code) ? code : 'an error without a proper code'
      return { firstStatus, status, error, url: target.href }
    }
    if (target.origin !== origin) return { firstStatus, status, error: undefined, url }
    if (redirects === MAX_REDIRECTS) throw new ProviderError(endpoint, 'invalid_response', 'it redirects in circles')
    url = target.href
  }
}
