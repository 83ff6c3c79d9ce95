import type { ProviderMetadata } from '../../../provider/metadata.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'

const { ok, warning } = findingsFor('refresh')

/**
 * Reports if refreshes will probably work, from the discovery document and the endpoint addresses. Only a login can test a
 * refresh.
 */
export async function refresh({ idp, mode }: Provider): Promise<Finding[]> {
  const metadata = await idp.metadata()
  const findings = mode.offersPublicToken ? [dualModeSupport(metadata)] : []
  const isOffered = metadata.scopesSupported?.includes('offline_access') ?? false
  if (!isOffered || mode.loginScope.split(' ').includes('offline_access')) return findings
  return [
    ...findings,
    warning(
      'The provider offers offline_access, but the scopes do not contain it. Many providers issue a refresh token only with this scope.',
      'Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'
    )
  ]
}

interface KnownProvider {
  /** The authorization endpoint and the token endpoint of this provider match these patterns on every host. */
  readonly authorization: RegExp
  readonly token: RegExp
  readonly finding: Finding
}

const SINGLE_MODE = 'Use --mode single, unless a login in dual mode works with your version.'

// These findings were tested with the versions in docs/providers/.
const knownProviders: readonly KnownProvider[] = [
  {
    authorization: /\/protocol\/openid-connect\/auth$/,
    token: /\/protocol\/openid-connect\/token$/,
    finding: ok(
      'This looks like Keycloak, which supports dual mode: a refresh can request only the public scopes, and the next refresh can request all scopes again.'
    )
  },
  {
    authorization: /\/oauth2\/auth$/,
    token: /\/oauth2\/token$/,
    finding: warning(
      'This looks like Ory Hydra, which returns all scopes of the login at every refresh. Dual mode does not accept a public token with all scopes.',
      SINGLE_MODE
    )
  },
  {
    authorization: /\/authorize\/$/,
    token: /\/token\/$/,
    finding: warning(
      'This looks like Django OAuth Toolkit, which invalidates the internal token and its scopes when it issues the public token.',
      SINGLE_MODE
    )
  }
]

/** Dual mode needs a provider where a refresh can request fewer scopes, and the next refresh all scopes again. */
function dualModeSupport({ isAps, authorizationEndpoint, tokenEndpoint }: ProviderMetadata): Finding {
  if (isAps)
    return ok(
      'Autodesk Platform Services supports dual mode: a refresh can request only the public scopes, and the next refresh can request all scopes again.'
    )
  const known = knownProviders.find(
    ({ authorization, token }) => authorization.test(authorizationEndpoint) && token.test(tokenEndpoint)
  )
  if (known) return known.finding
  return ok(
    'Dual mode needs a provider where a refresh can request only the public scopes, and the next refresh can request all scopes again. Only a login can test that.'
  )
}
