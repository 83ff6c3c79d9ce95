import { homeUrlOf } from '../../../config/addresses.js'
import { endSessionUrl } from '../../../idp/end-session-url.js'
import { OAuthError, UpstreamError } from '../../../idp/errors.js'
import { type Finding, findingsFor } from '../finding.js'
import { followRedirects } from '../follow-redirects.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, findingOfStatus, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('logout')

/** Tries the endpoint that the setting `logout` needs. */
export async function logout(provider: Provider): Promise<Finding[]> {
  switch (provider.config.logout) {
    case 'local':
      return [ok('Sessions end here; the provider is not told.')]
    case 'revoke':
      return revocation(provider)
    case 'idp':
      return endOfSession(provider)
  }
}

/** Revokes a token that nobody issued, which must succeed (RFC 7009 section 2.2). */
async function revocation({ config, idp }: Provider): Promise<Finding[]> {
  const { revocationEndpoint } = await idp.metadata()
  if (revocationEndpoint === undefined) return [noRevocation(config.platform.revocationEndpoint)]
  const asked: CheckedRequest = {
    check: 'logout',
    endpoint: 'The revocation endpoint',
    url: revocationEndpoint,
    setting: settingOfEndpoint(config, 'revocationEndpoint'),
    timeoutSeconds: Math.min(config.platform.timeoutSeconds, 2)
  }
  try {
    await idp.revokeRefreshToken('made-up-by-check')
    return [ok('The revocation endpoint takes refresh tokens back.')]
  } catch (error) {
    return [findingOfRefusal(error, asked)]
  }
}

function findingOfRefusal(error: unknown, asked: CheckedRequest): Finding {
  if (error instanceof OAuthError && (error.status === 401 || error.error === 'invalid_client')) {
    const message = `The revocation endpoint refuses the client (${error.status} ${error.error}).`
    return failed(message, 'Fix the client finding first. If that one is ok, set logout to local.')
  }
  // Some providers refuse a made-up token, although RFC 7009 section 2.2 has it accepted.
  if ((error instanceof OAuthError || error instanceof UpstreamError) && error.status === 400) {
    const code = error instanceof OAuthError ? ` ${error.error}` : ''
    const message = `The revocation endpoint refuses a made-up token (400${code}), so a real one is not proved.`
    return warning(message, 'Sign in and out once, and look for revocation_failed in the log.')
  }
  return findingOfError(error, asked)
}

function noRevocation(configured: string | undefined): Finding {
  if (configured === 'none') return ok('Revocation is switched off: refresh tokens outlive a logout.')
  return warning(
    'The discovery document names no revocation endpoint: refresh tokens outlive a logout.',
    'Set platform.revocationEndpoint, or logout to local.'
  )
}

/** Opens the address as the browser of somebody who is not signed in there, and follows it as far as that host leads. */
async function endOfSession(provider: Provider): Promise<Finding[]> {
  const { config, idp, transport } = provider
  const { clientId, callbackUrl, timeoutSeconds } = config.platform
  const metadata = await idp.metadata()
  const homeUrl = homeUrlOf(callbackUrl)
  const request = { clientId, postLogoutRedirectUri: homeUrl, idTokenHint: undefined }
  const url = endSessionUrl(metadata, request)
  if (url === undefined) {
    return [
      failed(
        'The discovery document names no end-session endpoint: nobody is signed out at the provider.',
        'Set platform.endSessionEndpoint, or logout to revoke.'
      )
    ]
  }
  const asked: CheckedRequest = {
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
      const message = `The end-session endpoint refuses a logout without an ID token: ${error}.`
      return [warning(message, `${next} If it is registered, sign in and out once: some want the ID token.`)]
    }
    if (status < 400) return [ok(`The end-session endpoint answers (${status}); ${homeUrl} must be registered for it.`)]
    if (status !== 400) return [findingOfStatus(status, asked)]
    return [failed('The end-session endpoint turns this server away (400).', next)]
  } catch (error) {
    return [findingOfError(error, asked)]
  }
}
