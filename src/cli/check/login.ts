import { randomBytes } from 'node:crypto'
import { isErrorCode } from '../../idp/errors.js'
import { codeChallengeOf } from '../../login/pkce.js'
import { type Asked, findingOfError, findingOfStatus, settingOfEndpoint } from './answer.js'
import { about, type Finding } from './finding.js'
import type { Provider } from './provider.js'

const { ok, warning, failed } = about('login')

// What a provider answers to `prompt=none`; then there is nothing wrong with the request itself.
const WANTS_A_PERSON = /^(login|interaction|consent|account_selection)_required$/

const remedies: Readonly<Record<string, string>> = {
  invalid_scope: 'Ask only for scopes that the provider knows and the application may have.',
  unauthorized_client: 'Register the application as a web application that may use the authorization code grant.',
  unsupported_response_type: 'Register the application as a web application that may use the authorization code grant.',
  invalid_request: 'Try platform.pkce: false, if the provider does not know PKCE.'
}

/** Goes where a browser would be sent, as somebody who has never been there, and looks only whether it is let in. */
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
  const asked: Asked = {
    check: 'login',
    endpoint: 'The authorization endpoint',
    url: authorizationEndpoint,
    setting: settingOfEndpoint(config, 'authorizationEndpoint'),
    timeoutSeconds
  }
  try {
    const headers = { accept: 'text/html' }
    const { status, location } = await transport.call({ endpoint: 'authorization', url, headers })
    const refusal = refusalIn(location, url, callbackUrl)
    if (refusal !== undefined) {
      const next = remedies[refusal] ?? "Look for this code in the provider's documentation."
      return [failed(`The authorization endpoint refuses this login: ${refusal}.`, next)]
    }
    if (status < 300)
      return [ok(`The authorization endpoint answers with a page (${status}), which only a person can judge.`)]
    if (status < 400) return [ok(`The authorization endpoint lets this login in (${status}).`)]
    if (status === 400 || status === 401) {
      const next = `Register ${callbackUrl}, to the letter, for the client ${clientId}.`
      return [failed(`The authorization endpoint turns this login away (${status}).`, next)]
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

/** The error with which the browser would be sent back to us. */
function refusalIn(location: string | undefined, url: string, callbackUrl: string): string | undefined {
  if (location === undefined || !URL.canParse(location, url)) return undefined
  const target = new URL(location, url)
  const callback = new URL(callbackUrl)
  const error = target.searchParams.get('error')
  if (target.origin !== callback.origin || target.pathname !== callback.pathname || error === null) return undefined
  if (!isErrorCode(error)) return 'an error without a proper code'
  return WANTS_A_PERSON.test(error) ? undefined : error
}
