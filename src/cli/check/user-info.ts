import { OAuthError, UpstreamError } from '../../idp/errors.js'
import { type Asked, checkAddress, findingOfError, settingOfEndpoint } from './answer.js'
import { about, type Finding } from './finding.js'
import type { Provider } from './provider.js'

const { ok, failed } = about('userinfo')

/** Shows a token that nobody issued. Only its refusal tells that an endpoint is there. */
export async function userInfo({ config, idp }: Provider): Promise<Finding[]> {
  const { userinfoEndpoint } = await idp.metadata()
  const asked: Asked = {
    check: 'userinfo',
    endpoint: 'The user info endpoint',
    url: userinfoEndpoint,
    setting: settingOfEndpoint(config, 'userinfoEndpoint'),
    timeoutSeconds: config.platform.timeoutSeconds
  }
  try {
    await idp.userInfo('made-up-by-check')
    return [failed('The user info endpoint answers whoever asks, so it is none.', checkAddress(asked))]
  } catch (error) {
    const status = error instanceof OAuthError || error instanceof UpstreamError ? error.status : undefined
    if (status === 400 || status === 401 || status === 403) {
      return [ok(`The user info endpoint refuses a made-up token, as it should (${status}).`)]
    }
    return [findingOfError(error, asked)]
  }
}
