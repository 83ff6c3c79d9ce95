import test, { type ExecutionContext } from 'ava'
import { checkRefresh } from '#src/cli/check/client-and-refresh.js'
import { openProvider, type Provider } from '#src/cli/check/endpoints-and-clock.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkLogout } from '#src/cli/check/login-and-logout.js'
import type { ProviderMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import type { HostileIdp } from '../../helpers/hostile-idp/index.js'
import { checkAt, isGolden, type Situation, someProvider, testFindings } from './checked.js'

/** A provider whose endpoints have these paths. */
function at(authorization: string, token: string): Situation {
  const discovery = ({ issuer }: HostileIdp) => ({
    authorization_endpoint: issuer + authorization,
    token_endpoint: issuer + token
  })
  return { discovery }
}

const supporting = (...scopes: string[]): Situation => ({ discovery: () => ({ scopes_supported: scopes }) })

testFindings('refresh', {
  'offline_access that is offered and not requested': {
    ...supporting('openid', 'offline_access'),
    args: ['--scopes', 'openid']
  },
  'offline_access that is requested without consent': {
    ...supporting('openid', 'offline_access'),
    args: ['--scopes', 'openid offline_access']
  }
})

const offline = ['--scopes', 'openid offline_access']
testFindings('refresh', {
  'offline_access that the provider does not offer': { ...supporting('openid'), args: ['--scopes', 'openid'] },
  'a provider that does not list its scopes': { discovery: () => ({}), args: ['--scopes', 'openid'] },
  'offline_access with prompt=consent': {
    discovery: () => ({}),
    args: offline,
    env: () => ({ PLATFORM_AUTHORIZATION_PARAMS: 'prompt=login+consent' })
  },
  'a provider that needs no consent': { ...at('/application/o/authorize/', '/application/o/token/'), args: offline }
})

/** Calls a check with the metadata of a provider on the internet, to which it sends no request. */
async function findingsAt(
  t: ExecutionContext,
  issuer: string,
  settings: TestSettings,
  check: (provider: Provider, metadata: ProviderMetadata) => Iterable<Finding> | Promise<Iterable<Finding>>
) {
  const provider = openProvider(testConfig(someProvider, settings), Date.now)
  t.teardown(() => provider.transport.close())
  const metadata = { ...(await provider.idp.metadata()), issuer, quirks: quirksOf({ issuer }) }
  return [...(await check(provider, metadata))]
}

for (const authorizationParams of [{}, { access_type: 'offline' }, { access_type: 'offline', prompt: 'consent' }]) {
  test(`refresh: Google with ${JSON.stringify(authorizationParams)}`, async t => {
    const platform = { authorizationParams }
    isGolden(t, await findingsAt(t, 'https://accounts.google.com', { platform }, checkRefresh))
  })
}

test('logout: Cognito without logout_uri, to which no request is sent', async t => {
  const issuer = 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a'
  isGolden(t, await findingsAt(t, issuer, { logout: { revoke: false, idp: true } }, checkLogout))
})

const providers: Readonly<Record<string, Situation>> = {
  Keycloak: at('/realms/r/protocol/openid-connect/auth', '/realms/r/protocol/openid-connect/token'),
  Hydra: at('/oauth2/auth', '/oauth2/token'),
  'Django OAuth Toolkit': at('/o/authorize/', '/o/token/'),
  'any other provider': at('/oauth2/authorize', '/oauth2/token')
}

for (const [what, situation] of Object.entries(providers)) {
  test(`refresh: dual mode at ${what}, and no finding in single mode`, async t => {
    isGolden(t, (await checkAt(t, { ...situation, args: ['--mode', 'dual'] })).allOf('refresh'))
    t.deepEqual((await checkAt(t, situation)).allOf('refresh'), [])
  })
}

testFindings('scopes', {
  'an issuer without openid': { discovery: () => ({}), args: ['--scopes', 'data:read'] },
  'an issuer with openid': { discovery: () => ({}), args: ['--scopes', 'openid data:read'] },
  'no issuer': {}
})
