import { randomBytes } from 'node:crypto'
import { signingKeyOf } from '../../config/client-key.js'
import { quote } from '../../config/errors.js'
import type { Config } from '../../config/settings.js'
import type { Mode } from '../../modes/mode.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import type { Quirks } from '../../provider/quirks.js'
import {
  type CheckedRequest,
  checkAddress,
  type Finding,
  failed,
  findingOfError,
  ok,
  requestTo,
  warning
} from './findings.js'
import type { Provider } from './provider.js'

/**
 * Tests the client id and secret with a made-up code. If they are right, the provider rejects the code
 * (`invalid_grant`). Otherwise it rejects the client and does not check the code (RFC 6749 section 5.2).
 */
export async function checkClient({ config, idp }: Provider): Promise<Finding> {
  const { tokenEndpoint } = await idp.metadata()
  const request = requestTo(config, 'tokenEndpoint', tokenEndpoint)
  try {
    const random = () => randomBytes(32).toString('base64url')
    await idp.authorizationCodeGrant({ code: random(), codeVerifier: config.platform.pkce ? random() : undefined })
    return failed(
      'The token endpoint gave tokens for a made-up code.',
      "Do not use this provider. The address may be wrong, so compare it with the provider's documentation."
    )
  } catch (error) {
    return findingOfClientError(error, request, credentialsOf(config))
  }
}

/** The credentials of the client, as messages name them, and what to do if the provider rejects them. */
interface CredentialTexts {
  readonly kind: 'secret' | 'key'
  readonly compare: string
  readonly otherwise: string
}

function credentialsOf({ platform }: Config): CredentialTexts {
  const key = platform.clientAuthentication === 'private_key_jwt' ? signingKeyOf(platform) : undefined
  if (!key) {
    return {
      kind: 'secret',
      compare: "Compare platform.clientId and platform.clientSecret with the application's page.",
      otherwise: 'set platform.clientAuthentication to another value'
    }
  }
  const keyId = key.keyId === undefined ? 'no key id' : `the key id ${quote(key.keyId)}`
  return {
    kind: 'key',
    compare: `Compare platform.clientId with the application's page, and register the public key there, with ${keyId} and the algorithm ${key.algorithm}.`,
    otherwise: 'compare platform.issuer with the issuer that the provider expects as the audience of assertions'
  }
}

function findingOfClientError(error: unknown, request: CheckedRequest, credentials: CredentialTexts): Finding {
  // The status 401 means that the client id or secret is wrong (RFC 6749 section 5.2), even if the error code is not
  // invalid_client. For example, Keycloak sends unauthorized_client.
  if (error instanceof OAuthError)
    return error.status === 401 ? wrongCredentials(error, credentials) : findingOfCode(error, credentials)
  if (error instanceof ProviderError && (error.status === 401 || error.status === 403)) {
    return failed(
      `The token endpoint rejects this client (${error.status}) and gives no reason.`,
      `${credentials.compare} If they are right, ask the provider if it blocks this machine.`
    )
  }
  return findingOfError(error, request)
}

function wrongCredentials(
  { error, status }: Pick<OAuthError, 'error' | 'status'>,
  { kind, compare, otherwise }: CredentialTexts
): Finding {
  return failed(
    `The client id or ${kind} is wrong. The token endpoint rejects the client (${status} ${error}).`,
    `${compare} If they are right, ${otherwise}.`
  )
}

function findingOfCode({ error, status }: OAuthError, credentials: CredentialTexts): Finding {
  switch (error) {
    case 'invalid_grant':
      return ok(
        `The client id and ${credentials.kind} work. The token endpoint rejected only the made-up code (invalid_grant).`
      )
    case 'invalid_client':
      return wrongCredentials({ error, status }, credentials)
    case 'unauthorized_client':
    case 'unsupported_grant_type':
      return failed(
        `The token endpoint does not let this client exchange codes (${status} ${error}).`,
        'Register the application as a web application that may use the authorization code grant.'
      )
    default:
      return warning(
        `The token endpoint rejected a made-up code with an unusual error (${status} ${error}), so the ${credentials.kind} may be wrong.`,
        `Sign in once. If that fails, look for ${error} in the provider's documentation.`
      )
  }
}

/** Tests the user info endpoint with a made-up token. If the token is rejected, the address is probably right. */
export async function checkUserInfo({ config, idp, mode }: Provider): Promise<Finding> {
  const { userinfoEndpoint } = await idp.metadata()
  if (userinfoEndpoint === undefined) return withoutEndpoint(config, mode)
  const request = requestTo(config, 'userinfoEndpoint', userinfoEndpoint)
  try {
    await idp.userInfo('made-up-by-check', undefined)
    return failed('The address accepted a made-up token, so it is not a user info endpoint.', checkAddress(request))
  } catch (error) {
    const status = error instanceof OAuthError || error instanceof ProviderError ? error.status : undefined
    if (status === 400 || status === 401 || status === 403) {
      return ok(`The user info endpoint rejects a made-up token, as it should (${status}).`)
    }
    return findingOfError(error, request)
  }
}

function withoutEndpoint({ access }: Config, { loginScope }: Mode): Finding {
  if (loginScope.split(' ').includes('openid')) {
    return ok('There is no user info endpoint, so names come from the ID token.')
  }
  if (access.allow) {
    return failed(
      'There is no user info endpoint and no ID token, so access.allow cannot be checked and no user can sign in.',
      'Add openid and email to the scopes.'
    )
  }
  return warning(
    'There is no user info endpoint and no ID token, so /api/auth/profile returns an empty name.',
    'Add openid to the scopes.'
  )
}

/**
 * Reports if refreshes will probably work. It derives this from the discovery document and the endpoint addresses,
 * because only a login can test a refresh.
 */
export async function checkRefresh({ idp, mode }: Provider): Promise<Finding[]> {
  const metadata = await idp.metadata()
  const findings = mode.offersPublicToken ? [dualModeSupport(metadata.quirks)] : []
  const isOffered = metadata.scopesSupported?.includes('offline_access') ?? false
  if (!isOffered || mode.loginScope.split(' ').includes('offline_access')) return findings
  return [
    ...findings,
    warning(
      'The provider offers the scope offline_access, but the settings do not request it. Many providers issue a refresh token only with this scope.',
      'Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'
    )
  ]
}

/**
 * Reports if the provider supports dual mode. In dual mode, one refresh requests fewer scopes, and the next one
 * requests all scopes again.
 */
function dualModeSupport({ name, isSure, dualModeProblem }: Quirks): Finding {
  const need = 'a refresh can request only the public scopes, and the next refresh can request all scopes again.'
  if (name === undefined || dualModeProblem === undefined) {
    return ok(`Dual mode needs a provider where ${need} Only a login can test that.`)
  }
  const provider = isSure ? name : `This looks like ${name}, which`
  if (dualModeProblem === null) return ok(`${provider} supports dual mode: ${need}`)
  const next = 'Use --mode single, unless a login in dual mode works with your version.'
  return warning(`${provider} ${dualModeProblem}.`, next)
}
