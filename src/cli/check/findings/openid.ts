import type { LoadedConfig } from '../../../config/load.js'
import { APS } from '../../../idp/metadata.js'
import type { Mode } from '../../../modes/mode.js'
import { type Finding, findingsFor } from '../finding.js'

const { warning } = findingsFor('scopes')

/** Warns when a provider of OpenID Connect is not asked who signs in. */
export function openid({ config, origins }: LoadedConfig, { loginScope }: Mode): Finding[] {
  const { issuer } = config.platform
  if (issuer === undefined || loginScope.split(' ').includes('openid')) return []
  // APS, and the demo in its place, give tokens for their own scopes and are asked by user info who signed in.
  if (issuer === APS.issuer || origins['platform.issuer'] === 'demo') return []
  const message = 'platform.issuer is set, but openid is not among the scopes: no ID token proves who signs in.'
  return [warning(message, 'Add openid to the scopes, unless this provider knows OAuth 2.0 alone.')]
}
