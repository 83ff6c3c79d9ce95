import type { ProviderMetadata } from '../../../idp/metadata.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'

const { ok, warning } = findingsFor('refresh')

/** Tells what can be known of refreshes without a login: from the discovery document, and from what providers are known for. */
export async function refresh({ idp, mode }: Provider): Promise<Finding[]> {
  const metadata = await idp.metadata()
  const findings = mode.offersPublicToken ? [narrowing(metadata)] : []
  const isOffered = metadata.scopesSupported?.includes('offline_access') ?? false
  if (!isOffered || mode.loginScope.split(' ').includes('offline_access')) return findings
  return [
    ...findings,
    warning(
      'The provider offers offline_access, which is not asked for. Many issue a refresh token only with it.',
      'Add offline_access to the scopes, unless logins work without it (they do at Keycloak).'
    )
  ]
}

interface KnownProvider {
  /** Endings of the two endpoints, at which this provider is known whatever its address. */
  readonly authorization: RegExp
  readonly token: RegExp
  readonly finding: Finding
}

const SINGLE_MODE = 'Use --mode single, unless a login shows that your version does otherwise.'

// As seen in the versions of docs/providers/.
const knownProviders: readonly KnownProvider[] = [
  {
    authorization: /\/protocol\/openid-connect\/auth$/,
    token: /\/protocol\/openid-connect\/token$/,
    finding: ok('Keycloak narrows a refresh to the public scopes and keeps the login wide.')
  },
  {
    authorization: /\/oauth2\/auth$/,
    token: /\/oauth2\/token$/,
    finding: warning(
      'This looks like Ory Hydra, which gives every refresh all scopes of the login: dual mode refuses such a public token.',
      SINGLE_MODE
    )
  },
  {
    authorization: /\/authorize\/$/,
    token: /\/token\/$/,
    finding: warning(
      'This looks like Django OAuth Toolkit, which ends the internal token and its scopes when the public token is issued.',
      SINGLE_MODE
    )
  }
]

/** Dual mode needs a refresh that asks for fewer scopes to give fewer, and the next one to give all of them again. */
function narrowing({ isAps, authorizationEndpoint, tokenEndpoint }: ProviderMetadata): Finding {
  if (isAps) return ok('Autodesk Platform Services narrows a refresh to the public scopes and keeps the login wide.')
  const known = knownProviders.find(
    ({ authorization, token }) => authorization.test(authorizationEndpoint) && token.test(tokenEndpoint)
  )
  if (known) return known.finding
  return ok(
    'Only a login shows whether this provider narrows a refresh to the public scopes and keeps the login wide, as dual mode needs.'
  )
}
