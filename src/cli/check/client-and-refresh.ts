import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/settings.js'
import { signingKeyOf } from '../../config/types/client-key.js'
import { quote } from '../../config/types/problem.js'
import type { Mode } from '../../login/mode.js'
import { createIdentityProvider } from '../../provider/client.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import { OAuthError, ProviderError } from '../../provider/provider-error.js'
import type { Quirks } from '../../provider/quirks.js'
import { hasNoAccess, requestTo, urlAdvice, webApplicationAdvice } from './endpoint-errors.js'
import type { Provider } from './endpoints-and-clock.js'
import { type Finding, failed, ok, warning } from './findings.js'

/**
 * Tests the client id and secret with a made-up code. If they are right, the provider rejects the code
 * (`invalid_grant`). Otherwise it rejects the client and does not check the code (RFC 6749 section 5.2).
 */
export async function checkClient(provider: Provider, metadata: ProviderMetadata): Promise<Finding> {
  const { config, idp } = provider
  try {
    await exchangeMadeUpCode(idp)
  } catch (error) {
    if (hasNoAccess(error)) throw error
    // Some providers send such a response to a client that authenticates in the wrong way, or with PKCE.
    const { status, error: code } = error as Partial<OAuthError>
    const isDoubtful = error instanceof OAuthError && (status === 401 || /^invalid_(client|request)$/.test(code ?? ''))
    const other = isDoubtful ? await otherSetting(provider, metadata) : undefined
    if (other === undefined) return findingOfClientError(error, config)
    const [key, right] = other
    return failed`The client id and ${credentialsOf(config.platform).kind} are right, but the token endpoint accepts them only with platform.${key} ${right}, and the setting is ${config.platform[key]}. Next: Set platform.${key} to ${right}.`
  }
  return failed`The token endpoint gave tokens for a made-up code. Next: Do not use this provider. The URL may be wrong, so compare it with the provider's documentation.`
}

type Platform = Config['platform']

function exchangeMadeUpCode(idp: Provider['idp']) {
  const random = () => randomBytes(32).toString('base64url')
  return idp.authorizationCodeGrant({ code: random(), codeVerifier: random() })
}

/**
 * Sends more made-up codes to the same endpoint: one with the secret in the header instead of the body or the reverse, and one
 * without PKCE. Returns the setting with which the provider accepts the client. The discovery document does not show this, because
 * a provider that supports both methods can allow each client only one.
 */
async function otherSetting({ config, transport }: Provider, { tokenEndpoint }: ProviderMetadata) {
  const { platform } = config
  const isBasic = platform.clientAuthMethod === 'client_secret_basic'
  const settings = [
    ['clientAuthMethod', isBasic ? 'client_secret_post' : 'client_secret_basic'],
    ['pkce', false]
  ] as const
  for (const [key, value] of settings) {
    if (key === 'pkce' ? !platform.pkce : platform.clientAuthMethod === 'private_key_jwt') continue
    const changed = { ...platform, tokenEndpoint, [key]: value }
    const idp = createIdentityProvider(changed, transport)
    const error: unknown = await exchangeMadeUpCode(idp).catch((error: unknown) => error)
    if (error instanceof OAuthError && error.error === 'invalid_grant') return [key, value] as const
  }
  return undefined
}

/** Returns how messages name the credentials of the client, and what to advise if the provider rejects them. */
function credentialsOf(platform: Platform) {
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

function findingOfClientError(cause: unknown, { platform }: Config): Finding {
  const { kind, compare, otherwise } = credentialsOf(platform)
  const { status } = cause as Partial<ProviderError>
  if (cause instanceof ProviderError && !(cause instanceof OAuthError) && (status === 401 || status === 403))
    return failed`The token endpoint rejects this client (${status}) and gives no reason. Next: ${compare} If they are right, ask the provider if it blocks this machine.`
  if (!(cause instanceof OAuthError)) throw cause
  const { error } = cause
  // LinkedIn responds to a code_verifier with invalid_client.
  const pkce = platform.pkce ? ' If the provider does not support PKCE, set platform.pkce to false.' : ''
  // The status 401 means that the client id or secret is wrong (RFC 6749 section 5.2), even if the error code is not
  // invalid_client. For example, Keycloak sends unauthorized_client.
  if (status === 401 || error === 'invalid_client')
    return failed`The client id or ${kind} is wrong. The token endpoint rejects the client (${status} ${error}). Next: ${compare} If they are right, ${otherwise}.${pkce}`
  if (error === 'invalid_grant')
    return ok`The client id and ${kind} work. The token endpoint rejected only the made-up code (invalid_grant).`
  if (error === 'unauthorized_client' || error === 'unsupported_grant_type')
    return failed`The token endpoint does not let this client exchange codes (${status} ${error}). ${webApplicationAdvice}`
  return warning`The token endpoint rejected a made-up code with an unusual error (${status} ${error}), so the ${kind} may be wrong. Next: Sign in once. If that fails, look for ${error} in the provider's documentation.`
}

/** Tests the user info endpoint with a made-up token. If it rejects the token, its URL is probably right. */
export async function checkUserInfo({ config, idp, mode }: Provider, metadata: ProviderMetadata): Promise<Finding> {
  if (metadata.userinfoEndpoint === undefined) return withoutUserInfo(config, mode)
  try {
    await idp.userInfo('made-up-by-check', undefined)
  } catch (error) {
    const { status = 0 } = error as Partial<ProviderError>
    if (hasNoAccess(error) || ![400, 401, 403].includes(status)) throw error
    return ok`The user info endpoint rejects a made-up token, as it should (${status}).`
  }
  const advice = urlAdvice(requestTo('userinfo', config, metadata))
  return failed`The URL accepted a made-up token, so it is not a user info endpoint. ${advice}`
}

function withoutUserInfo({ access }: Config, { loginScope }: Mode): Finding {
  const seen = 'There is no user info endpoint'
  if (loginScope.split(' ').includes('openid')) return ok`${seen}, so names come from the ID token.`
  if (access.allow?.length)
    return failed`${seen} and no ID token, so access.allow cannot be checked and no user can sign in. Next: Add openid and email to the scopes.`
  return warning`${seen} and no ID token, so /api/auth/profile returns an empty name. Next: Add openid to the scopes.`
}

/**
 * Reports if refreshes will probably work. It derives this from the discovery document and the URLs of the endpoints,
 * because only a login can test a refresh.
 */
export function* checkRefresh({ config, mode }: Provider, metadata: ProviderMetadata): Generator<Finding> {
  const { platform } = config
  const { quirks, scopesSupported = [] } = metadata
  const { access_type, prompt = '' } = platform.authorizationParams ?? {}
  const asksForConsent = prompt.split(' ').includes('consent')
  const requestsOffline = mode.loginScope.split(' ').includes('offline_access')
  const { name } = quirks
  if (mode.offersPublicToken) yield dualModeSupport(quirks)
  if (quirks.needsAccessType && access_type !== 'offline')
    yield failed`${name} issues a refresh token only with the parameter access_type=offline, so every login fails. Next: Set platform.authorizationParams to access_type=offline&prompt=consent.`
  else if (quirks.needsAccessType && !asksForConsent)
    yield warning`${name} issues a refresh token only when the user consents, so only the first login of a user works. Next: Add prompt=consent to platform.authorizationParams.`
  // Without discovery, the scope may have a different meaning.
  const needsConsent = platform.issuer !== undefined && !quirks.issuesOfflineWithoutConsent && !asksForConsent
  if (requestsOffline && needsConsent)
    yield warning`The settings request offline_access without prompt=consent. Some providers, such as Logto, then issue no refresh token (OpenID Connect Core section 11), and every login fails. Next: Sign in once. If the log says "it issued no refresh_token", add prompt=consent to platform.authorizationParams.`
  if (!requestsOffline && scopesSupported.includes('offline_access'))
    yield warning`The provider offers the scope offline_access, but the settings do not request it. Many providers issue a refresh token only with this scope. Next: Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).`
}

/**
 * Reports if the provider supports dual mode. In dual mode, one refresh requests fewer scopes, and the next one
 * requests all scopes again.
 */
function dualModeSupport({ name, isSure, dualModeProblem }: Quirks): Finding {
  const need = 'a refresh can request only the public scopes, and the next refresh can request all scopes again.'
  if (name === undefined || dualModeProblem === undefined)
    return ok`Dual mode needs a provider where ${need} Only a login can test that.`
  const provider = isSure ? name : `This looks like ${name}, which`
  if (dualModeProblem === null) return ok`${provider} supports dual mode: ${need}`
  return warning`${provider} ${dualModeProblem}. Next: Use --mode single, unless a login in dual mode works with your version.`
}
