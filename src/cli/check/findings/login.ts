import { randomBytes } from 'node:crypto'
import { codeChallengeOf } from '../../../login/pkce.js'
import { type Finding, findingsFor } from '../finding.js'
import { followRedirects } from '../follow-redirects.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, findingOfStatus, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('login')

// The provider answers so to `prompt=none`. The request itself is then fine.
const WANTS_A_PERSON = /^(login|interaction|consent|account_selection)_required$/

const remedies: Readonly<Record<string, string>> = {
  invalid_scope: 'Ask only for scopes that the provider knows and the application may have.',
  unauthorized_client: 'Register the application as a web application that may use the authorization code grant.',
  unsupported_response_type: 'Register the application as a web application that may use the authorization code grant.',
  invalid_request: 'Try platform.pkce: false, if the provider does not know PKCE.'
}

/** Opens the login as a browser would that has never been there. The finding says whether the provider lets it in. */
export async function login({ config, idp, mode, transport }: Provider): Promise<Finding[]> {
  const { clientId, callbackUrl, pkce, timeoutSeconds } = config.platform
  const random = () => randomBytes(32).toString('base64url')
  const { authorizationEndpoint } = await idp.metadata()
  const url = await idp.authorizationUrl({
    scope: mode.loginScope,
    state: random(),
    nonce: mode.loginScope.split(' ').includes('openid') ? random() : undefined,
    codeChallenge: pkce ? codeChallengeOf(random()) : undefined
  })
  const asked: CheckedRequest = {
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
    const register = `Register ${callbackUrl}, to the letter, for the client ${clientId}.`
    if (error !== undefined && !WANTS_A_PERSON.test(error)) {
      // RFC 6749 section 4.1.2.1: only when client and callback URL are right, the error comes back to the callback.
      if (!isCallback(end, callbackUrl)) {
        return [failed(`The authorization endpoint turns this login away: ${error}.`, register)]
      }
      const next = remedies[error] ?? "Look for this code in the provider's documentation."
      return [failed(`The authorization endpoint refuses this login: ${error}.`, next)]
    }
    if (firstStatus < 300)
      return [ok(`The authorization endpoint answers with a page (${status}), which only a person can judge.`)]
    if (status < 400) return [ok(`The authorization endpoint lets this login in (${firstStatus}).`)]
    // Dex answers 404 to a client that it does not know. An endpoint that is discovered exists.
    const isDiscovered = asked.setting === 'platform.issuer'
    if (status === 400 || status === 401 || (status === 404 && isDiscovered)) {
      return [failed(`The authorization endpoint turns this login away (${status}).`, register)]
    }
    if (status === 403) {
      const next = 'Open the login in a browser, and check the callback URL if it fails there too.'
      return [warning('The authorization endpoint turns this login away (403), or programs altogether.', next)]
    }
    return [findingOfStatus(status, asked)]
  } catch (error) {
    return [findingOfError(error, asked)]
  }
}

function isCallback(address: string, callbackUrl: string): boolean {
  const [reached, callback] = [new URL(address), new URL(callbackUrl)]
  return reached.origin === callback.origin && reached.pathname === callback.pathname
}
