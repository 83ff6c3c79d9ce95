import { randomBytes } from 'node:crypto'
import { codeChallengeOf } from '../../../login/pkce.js'
import { type Finding, findingsFor } from '../finding.js'
import { followRedirects } from '../follow-redirects.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, findingOfStatus, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('login')

// These errors mean that the person must sign in or consent. The provider has accepted the request itself.
const NEEDS_INTERACTION = /^(login|interaction|consent|account_selection)_required$/

const remedies: Readonly<Record<string, string>> = {
  invalid_scope: 'Request only scopes that the provider knows and the application may use.',
  unauthorized_client: 'Register the application as a web application that may use the authorization code grant.',
  unsupported_response_type: 'Register the application as a web application that may use the authorization code grant.',
  invalid_request: 'If the provider does not support PKCE, set platform.pkce to false.'
}

/** Opens the login page like a browser that has no cookies yet, and reports if the provider accepts the request. */
export async function login({ config, idp, mode, transport }: Provider): Promise<Finding[]> {
  const { clientId, callbackUrl, pkce, timeoutSeconds } = config.platform
  const random = () => randomBytes(32).toString('base64url')
  const { authorizationEndpoint } = await idp.metadata()
  const url = await idp.authorizationUrl({
    prompt: undefined,
    scope: mode.loginScope,
    state: random(),
    nonce: mode.loginScope.split(' ').includes('openid') ? random() : undefined,
    codeChallenge: pkce ? codeChallengeOf(random()) : undefined
  })
  const request: CheckedRequest = {
    check: 'login',
    endpoint: 'The authorization endpoint',
    url: authorizationEndpoint,
    setting: settingOfEndpoint(config, 'authorizationEndpoint'),
    timeoutSeconds
  }
  try {
    const {
      firstStatus,
      status,
      error,
      url: end
    } = await followRedirects(transport, { endpoint: 'authorization', url })
    const register = `Register exactly ${callbackUrl} for the client ${clientId}.`
    if (error !== undefined && !NEEDS_INTERACTION.test(error)) {
      // The provider sends an error to the callback URL only if the client and this URL are valid (RFC 6749 section 4.1.2.1).
      if (!isCallback(end, callbackUrl)) {
        return [failed(`The authorization endpoint rejects the client or the callback URL: ${error}.`, register)]
      }
      const next = remedies[error] ?? "Look for this code in the provider's documentation."
      return [failed(`The authorization endpoint rejects this login: ${error}.`, next)]
    }
    if (firstStatus < 300)
      return [
        ok(
          `The authorization endpoint answers with a page (${status}). Open it in a browser to see if it is the login page.`
        )
      ]
    if (status < 400) return [ok(`The authorization endpoint accepts this login (${firstStatus}).`)]
    // Dex answers 404 to an unknown client. If the address comes from the discovery document, a 404 does not mean that the
    // address is wrong.
    const isDiscovered = request.setting === 'platform.issuer'
    if (status === 400 || status === 401 || (status === 404 && isDiscovered)) {
      return [failed(`The authorization endpoint rejects the client or the callback URL (${status}).`, register)]
    }
    if (status === 403) {
      const message =
        'The authorization endpoint answers 403. It rejects either this login or all requests that do not come from a browser.'
      return [warning(message, 'Open the login in a browser. If it fails there too, check the callback URL.')]
    }
    return [findingOfStatus(status, request)]
  } catch (error) {
    return [findingOfError(error, request)]
  }
}

function isCallback(address: string, callbackUrl: string): boolean {
  const [reached, callback] = [new URL(address), new URL(callbackUrl)]
  return reached.origin === callback.origin && reached.pathname === callback.pathname
}
