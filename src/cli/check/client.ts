import { randomBytes } from 'node:crypto'
import { signingKeyOf } from '../../config/client-key.js'
import { quote } from '../../config/errors.js'
import type { Config } from '../../config/settings.js'
import type { Mode } from '../../login/mode.js'
import { createIdentityProvider } from '../../provider/client.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import type { Quirks } from '../../provider/quirks.js'
import {
  type Finding,
  failed,
  hasNoAccess,
  ok,
  requestTo,
  urlAdvice,
  warning,
  webApplicationAdvice
} from './findings.js'
import type { Provider } from './provider.js'

/**
 * Tests the client id and secret with a made-up code. If they are right, the provider rejects the code
 * (`invalid_grant`). Otherwise it rejects the client and does not check the code (RFC 6749 section 5.2).
 */
export async function checkClient(provider: Provider, metadata: ProviderMetadata): Promise<Finding> {
  const { config, idp } = provider
  try {
    await exchangeMadeUpCode(idp, config)
  } catch (error) {
    if (hasNoAccess(error)) throw error
    const other = isAboutAuthentication(error) ? await otherAuthentication(provider, metadata) : undefined
    if (other === undefined) return findingOfClientError(error, credentialsOf(config))
    const { clientAuthMethod } = config.platform
    const message = `The client id and secret are right, but the token endpoint accepts them only with ${other}, and the setting is ${clientAuthMethod}.`
    return failed(message, `Set platform.clientAuthMethod to ${other}.`)
  }
  const next = "Do not use this provider. The URL may be wrong, so compare it with the provider's documentation."
  return failed('The token endpoint gave tokens for a made-up code.', next)
}

function exchangeMadeUpCode(idp: Provider['idp'], { platform }: Config) {
  const random = () => randomBytes(32).toString('base64url')
  return idp.authorizationCodeGrant({ code: random(), codeVerifier: platform.pkce ? random() : undefined })
}

/** True for a response that some providers send to a client that authenticates in the wrong way. */
function isAboutAuthentication(error: unknown): boolean {
  if (!(error instanceof OAuthError)) return false
  return error.status === 401 || error.error === 'invalid_client' || error.error === 'invalid_request'
}

/**
 * Sends another made-up code and the same secret to the same endpoint, in the header instead of the body or the reverse. Returns
 * the method if the provider then accepts the client. The discovery document does not show this, because a provider that
 * supports both methods can allow each client only one.
 */
async function otherAuthentication(
  { config, transport }: Provider,
  { tokenEndpoint }: ProviderMetadata
): Promise<string | undefined> {
  const { platform } = config
  if (platform.clientAuthMethod === 'private_key_jwt') return undefined
  const isBasic = platform.clientAuthMethod === 'client_secret_basic'
  const clientAuthMethod = isBasic ? 'client_secret_post' : 'client_secret_basic'
  const idp = createIdentityProvider({ ...platform, tokenEndpoint, clientAuthMethod }, transport)
  const error: unknown = await exchangeMadeUpCode(idp, config).catch((error: unknown) => error)
  return error instanceof OAuthError && error.error === 'invalid_grant' ? clientAuthMethod : undefined
}

/** Returns how messages name the credentials of the client, and what to advise if the provider rejects them. */
function credentialsOf({ platform }: Config) {
  const key = platform.clientAuthMethod === 'private_key_jwt' ? signingKeyOf(platform) : undefined
  if (!key) {
    return {
      kind: 'secret',
      compare: "Compare platform.clientId and platform.clientSecret with the application's page.",
      otherwise: 'the client may need private_key_jwt as platform.clientAuthMethod'
    }
  }
  const keyId = key.keyId === undefined ? 'no key id' : `the key id ${quote(key.keyId)}`
  return {
    kind: 'key',
    compare: `Check that platform.clientId is the client id on the application's page, and register the public key there, with ${keyId} and the algorithm ${key.algorithm}.`,
    otherwise: 'compare platform.issuer with the issuer that the provider expects as the audience of assertions'
  }
}

function findingOfClientError(cause: unknown, { kind, compare, otherwise }: ReturnType<typeof credentialsOf>): Finding {
  const { status } = cause as Partial<OAuthError | ProviderError>
  if (cause instanceof ProviderError && (status === 401 || status === 403)) {
    const message = `The token endpoint rejects this client (${status}) and gives no reason.`
    return failed(message, `${compare} If they are right, ask the provider if it blocks this machine.`)
  }
  if (!(cause instanceof OAuthError)) throw cause
  const { error } = cause
  // The status 401 means that the client id or secret is wrong (RFC 6749 section 5.2), even if the error code is not
  // invalid_client. For example, Keycloak sends unauthorized_client.
  if (status === 401 || error === 'invalid_client') {
    const message = `The client id or ${kind} is wrong. The token endpoint rejects the client (${status} ${error}).`
    return failed(message, `${compare} If they are right, ${otherwise}.`)
  }
  if (error === 'invalid_grant')
    return ok(`The client id and ${kind} work. The token endpoint rejected only the made-up code (invalid_grant).`)
  if (error === 'unauthorized_client' || error === 'unsupported_grant_type') {
    const message = `The token endpoint does not let this client exchange codes (${status} ${error}).`
    return failed(message, webApplicationAdvice)
  }
  const message = `The token endpoint rejected a made-up code with an unusual error (${status} ${error}), so the ${kind} may be wrong.`
  return warning(message, `Sign in once. If that fails, look for ${error} in the provider's documentation.`)
}

/** Tests the user info endpoint with a made-up token. If it rejects the token, its URL is probably right. */
export async function checkUserInfo({ config, idp, mode }: Provider, metadata: ProviderMetadata): Promise<Finding> {
  if (metadata.userinfoEndpoint === undefined) return withoutUserInfo(config, mode)
  try {
    await idp.userInfo('made-up-by-check', undefined)
  } catch (error) {
    const { status = 0 } = error as Partial<OAuthError | ProviderError>
    if (hasNoAccess(error) || ![400, 401, 403].includes(status)) throw error
    return ok(`The user info endpoint rejects a made-up token, as it should (${status}).`)
  }
  const next = urlAdvice(requestTo('userinfo', config, metadata))
  return failed('The URL accepted a made-up token, so it is not a user info endpoint.', next)
}

function withoutUserInfo({ access }: Config, { loginScope }: Mode): Finding {
  if (loginScope.split(' ').includes('openid'))
    return ok('There is no user info endpoint, so names come from the ID token.')
  const missing = 'There is no user info endpoint and no ID token, so'
  return access.allow?.length
    ? failed(
        `${missing} access.allow cannot be checked and no user can sign in.`,
        'Add openid and email to the scopes.'
      )
    : warning(`${missing} /api/auth/profile returns an empty name.`, 'Add openid to the scopes.')
}

/**
 * Reports if refreshes will probably work. It derives this from the discovery document and the URLs of the endpoints,
 * because only a login can test a refresh.
 */
export async function checkRefresh({ config, mode }: Provider, metadata: ProviderMetadata): Promise<Finding[]> {
  const { platform } = config
  return [
    ...(mode.offersPublicToken ? [dualModeSupport(metadata.quirks)] : []),
    ...(metadata.quirks.needsAccessType ? accessType(platform, metadata.quirks) : []),
    ...offlineAccess(platform, mode.loginScope.split(' '), metadata)
  ]
}

type Platform = Config['platform']

const asksForConsent = ({ authorizationParams: { prompt = '' } = {} }: Platform) =>
  prompt.split(' ').includes('consent')

function accessType(platform: Platform, { name }: Quirks): Finding[] {
  if (platform.authorizationParams?.access_type !== 'offline') {
    const message = `${name} issues a refresh token only with the parameter access_type=offline, so every login fails.`
    return [failed(message, 'Set platform.authorizationParams to access_type=offline&prompt=consent.')]
  }
  if (asksForConsent(platform)) return []
  const message = `${name} issues a refresh token only when the user consents, so only the first login of a user works.`
  return [warning(message, 'Add prompt=consent to platform.authorizationParams.')]
}

function offlineAccess(
  platform: Platform,
  scopes: readonly string[],
  { quirks, scopesSupported = [] }: ProviderMetadata
): Finding[] {
  if (scopes.includes('offline_access')) {
    // Without discovery, the scope may have a different meaning.
    if (platform.issuer === undefined || quirks.issuesOfflineWithoutConsent || asksForConsent(platform)) return []
    const message =
      'The settings request offline_access without prompt=consent. Some providers, such as Logto, then issue no refresh token (OpenID Connect Core section 11), and every login fails.'
    return [
      warning(
        message,
        'Sign in once. If the log says "it issued no refresh_token", add prompt=consent to platform.authorizationParams.'
      )
    ]
  }
  if (!scopesSupported.includes('offline_access')) return []
  const message =
    'The provider offers the scope offline_access, but the settings do not request it. Many providers issue a refresh token only with this scope.'
  const next = 'Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'
  return [warning(message, next)]
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
  const message = `${provider} ${dualModeProblem}.`
  return warning(message, 'Use --mode single, unless a login in dual mode works with your version.')
}
