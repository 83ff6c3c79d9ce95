import type { LoadedConfig } from '../../../config/load.js'
import type { Mode } from '../../../modes/mode.js'
import { APS } from '../../../provider/metadata.js'
import { type Finding, findingsFor } from '../finding.js'

const { warning } = findingsFor('scopes')

/** Warns if the provider supports OpenID Connect but the login does not request the scope `openid`. */
export function openid({ config, origins }: LoadedConfig, { loginScope }: Mode): Finding[] {
  const { issuer } = config.platform
  if (issuer === undefined || loginScope.split(' ').includes('openid')) return []
  // With APS, and with the demo that simulates it, the user info endpoint identifies the person without `openid`.
  if (issuer === APS.issuer || origins['platform.issuer'] === 'demo') return []
  const message = 'platform.issuer is set, but openid is not among the scopes, so no ID token proves who signs in.'
  return [warning(message, 'Add openid to the scopes, unless this provider supports only OAuth 2.0.')]
}
