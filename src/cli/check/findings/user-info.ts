import type { Config } from '../../../config/settings.js'
import type { Mode } from '../../../modes/mode.js'
import { OAuthError, ProviderError } from '../../../provider/errors.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, checkAddress, findingOfError, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('userinfo')

/** Sends a made-up token. If the token is rejected, the address is probably that of a user info endpoint. */
export async function userInfo({ config, idp, mode }: Provider): Promise<Finding[]> {
  const { userinfoEndpoint } = await idp.metadata()
  if (userinfoEndpoint === undefined) return [withoutEndpoint(config, mode)]
  const request: CheckedRequest = {
    check: 'userinfo',
    endpoint: 'The user info endpoint',
    url: userinfoEndpoint,
    setting: settingOfEndpoint(config, 'userinfoEndpoint'),
    timeoutSeconds: config.platform.timeoutSeconds
  }
  try {
    await idp.userInfo('made-up-by-check', undefined)
    return [failed('The address accepted a made-up token, so it is not a user info endpoint.', checkAddress(request))]
  } catch (error) {
    const status = error instanceof OAuthError || error instanceof ProviderError ? error.status : undefined
    if (status === 400 || status === 401 || status === 403) {
      return [ok(`The user info endpoint rejects a made-up token, as it should (${status}).`)]
    }
    return [findingOfError(error, request)]
  }
}

function withoutEndpoint({ access }: Config, { loginScope }: Mode): Finding {
  if (loginScope.split(' ').includes('openid')) {
    return ok('There is no user info endpoint, so names come from the ID token.')
  }
  if (access.allow) {
    return failed(
      'There is no user info endpoint and no ID token, so access.allow cannot be checked and nobody can sign in.',
      'Add openid and email to the scopes.'
    )
  }
  return warning(
    'There is no user info endpoint and no ID token, so /api/auth/profile returns an empty name.',
    'Add openid to the scopes.'
  )
}
