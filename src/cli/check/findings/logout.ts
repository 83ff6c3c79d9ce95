import { homeUrlOf } from '../../../config/addresses.js'
import { OAuthError, ProviderError } from '../../../provider/errors.js'
import { type Finding, findingsFor } from '../finding.js'
import { followRedirects } from '../follow-redirects.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, findingOfStatus, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('logout')

/** Tests the endpoint that the setting `logout` needs. */
export async function logout(provider: Provider): Promise<Finding[]> {
  switch (provider.config.logout) {
    case 'local':
      return [ok('A logout ends only the session of this server. The server does not inform the provider.')]
    case 'revoke':
      return revocation(provider)
    case 'idp':
      return idpLogout(provider)
  }
}

/** Revokes a made-up token, which must succeed (RFC 7009 section 2.2). */
async function revocation({ config, idp }: Provider): Promise<Finding[]> {
  const { revocationEndpoint } = await idp.metadata()
  if (revocationEndpoint === undefined) return [noRevocation(config.platform.revocationEndpoint)]
  const request: CheckedRequest = {
    check: 'logout',
    endpoint: 'The revocation endpoint',
    url: revocationEndpoint,
    setting: settingOfEndpoint(config, 'revocationEndpoint'),
    timeoutSeconds: Math.min(config.platform.timeoutSeconds, 2)
  }
  try {
    await idp.revokeRefreshToken('made-up-by-check')
    return [ok('The revocation endpoint accepts requests.')]
  } catch (error) {
    return [findingOfRevocationError(error, request)]
  }
}

function findingOfRevocationError(error: unknown, request: CheckedRequest): Finding {
  if (error instanceof OAuthError && (error.status === 401 || error.error === 'invalid_client')) {
    const message = `The revocation endpoint rejects the client (${error.status} ${error.error}).`
    return failed(message, 'Fix the client finding first. If the client finding is ok, set logout to local.')
  }
  // Some providers reject a made-up token, although RFC 7009 section 2.2 requires success.
  if ((error instanceof OAuthError || error instanceof ProviderError) && error.status === 400) {
    const code = error instanceof OAuthError ? ` ${error.error}` : ''
    const message = `The revocation endpoint rejects a made-up token (400${code}), so this check cannot tell if it accepts a real one.`
    return warning(message, 'Sign in and out once, and look for revocation_failed in the log.')
  }
  return findingOfError(error, request)
}

function noRevocation(configured: string | undefined): Finding {
  if (configured === 'none') return ok('Revocation is switched off, so refresh tokens stay valid after a logout.')
  return warning(
    'The discovery document has no revocation endpoint, so refresh tokens stay valid after a logout.',
    'Set platform.revocationEndpoint, or set logout to local.'
  )
}

/** Opens the end-session endpoint like the browser of a person who is not signed in at the provider. */
async function idpLogout(provider: Provider): Promise<Finding[]> {
  const { config, idp, transport } = provider
  const { callbackUrl, timeoutSeconds } = config.platform
  const homeUrl = homeUrlOf(callbackUrl)
  const url = await idp.endSessionUrl()
  if (url === undefined) {
    return [
      failed(
        'The discovery document has no end-session endpoint, so a logout does not sign out at the provider.',
        'Set platform.endSessionEndpoint, or set logout to revoke.'
      )
    ]
  }
  const request: CheckedRequest = {
    check: 'logout',
    endpoint: 'The end-session endpoint',
    url,
    setting: settingOfEndpoint(config, 'endSessionEndpoint'),
    timeoutSeconds
  }
  const next = `Register ${homeUrl} at the provider as an address to return to after logout.`
  try {
    const { status, error } = await followRedirects(transport, { endpoint: 'end_session', url })
    if (error !== undefined) {
      const message = `The end-session endpoint rejects a logout without an ID token: ${error}.`
      return [
        warning(
          message,
          `${next} If it is registered, sign in and out once, because some providers require the ID token.`
        )
      ]
    }
    if (status < 400)
      return [
        ok(`The end-session endpoint answers (${status}). ${homeUrl} must be registered as an address to return to.`)
      ]
    if (status !== 400) return [findingOfStatus(status, request)]
    return [failed('The end-session endpoint rejects the request (400).', next)]
  } catch (error) {
    return [findingOfError(error, request)]
  }
}
