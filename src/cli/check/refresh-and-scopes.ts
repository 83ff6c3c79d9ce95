import type { LoadedConfig } from '../../config/load.js'
import type { Config } from '../../config/settings.js'
import type { Mode } from '../../modes/mode.js'
import { type Quirks, quirksOf } from '../../provider/quirks.js'
import type { Provider } from './provider.js'
import { type Finding, ok, warning } from './report.js'

const WRITE_SCOPE = /:(write|create|update|delete|all)\b/

/**
 * Reports the access that pages get with the public token (in dual mode, the access token for pages). If the public
 * scopes are no narrower than the internal scopes, the validation of the settings already warns.
 */
export function checkScopes({ platform: { internalScopes, publicScopes } }: Config, mode: Mode): Finding[] {
  if (!mode.offersPublicToken) return [ok('scopes', `The token (${mode.loginScope}) stays on the server.`)]
  const writing = publicScopes.filter(scope => WRITE_SCOPE.test(scope))
  if (writing.length > 0) {
    const message = `Every script in your pages has the public token, which allows changes (${writing.join(' ')}).`
    return [warning('scopes', message, 'Put such scopes only into platform.internalScopes.')]
  }
  if (internalScopes.every(scope => publicScopes.includes(scope))) return []
  return [
    ok(
      'scopes',
      `Pages get ${publicScopes.join(' ')}, which is less than the server has (${internalScopes.join(' ')}).`
    )
  ]
}

/** Warns if the provider supports OpenID Connect but the login does not request the scope `openid`. */
export function checkOpenid({ config, sources }: LoadedConfig, { loginScope }: Mode): Finding[] {
  const { issuer } = config.platform
  if (issuer === undefined || loginScope.split(' ').includes('openid')) return []
  // The demo simulates Autodesk Platform Services.
  if (quirksOf({ issuer }).identifiesWithoutOpenid || sources['platform.issuer'] === 'demo') return []
  const message = 'platform.issuer is set, but openid is not among the scopes, so no ID token proves who signs in.'
  return [warning('scopes', message, 'Add openid to the scopes, unless this provider supports only OAuth 2.0.')]
}

/**
 * Reports if refreshes will probably work, from the discovery document and the endpoint addresses. Only a login can test a
 * refresh.
 */
export async function checkRefresh({ idp, mode }: Provider): Promise<Finding[]> {
  const metadata = await idp.metadata()
  const findings = mode.offersPublicToken ? [dualModeSupport(metadata.quirks)] : []
  const isOffered = metadata.scopesSupported?.includes('offline_access') ?? false
  if (!isOffered || mode.loginScope.split(' ').includes('offline_access')) return findings
  return [
    ...findings,
    warning(
      'refresh',
      'The provider offers offline_access, but the scopes do not contain it. Many providers issue a refresh token only with this scope.',
      'Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'
    )
  ]
}

/** Dual mode needs a provider where a refresh can request fewer scopes, and the next refresh all scopes again. */
function dualModeSupport({ name, isSure, dualModeProblem }: Quirks): Finding {
  const need = 'a refresh can request only the public scopes, and the next refresh can request all scopes again.'
  if (name === undefined || dualModeProblem === undefined) {
    return ok('refresh', `Dual mode needs a provider where ${need} Only a login can test that.`)
  }
  const provider = isSure ? name : `This looks like ${name}, which`
  if (dualModeProblem === null) return ok('refresh', `${provider} supports dual mode: ${need}`)
  const next = 'Use --mode single, unless a login in dual mode works with your version.'
  return warning('refresh', `${provider} ${dualModeProblem}.`, next)
}
