import test, { type ExecutionContext } from 'ava'
import { checkRefresh } from '#src/cli/check/client.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkLogout } from '#src/cli/check/login-and-logout.js'
import { openProvider, type Provider } from '#src/cli/check/provider.js'
import type { ProviderMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import type { HostileIdp } from '../../helpers/hostile-idp/index.js'
import { areFindings, checkAt, isFinding, type Situation, someProvider, testFindings } from './checked.js'

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
  'offline_access that is offered and not requested': [
    { ...supporting('openid', 'offline_access'), args: ['--scopes', 'openid'] },
    'warning offline_access → offline_access scopes Keycloak'
  ],
  'offline_access that is requested without consent': [
    { ...supporting('openid', 'offline_access'), args: ['--scopes', 'openid offline_access'] },
    'warning offline_access prompt=consent Logto → prompt=consent platform.authorizationParams'
  ]
})

const offline = ['--scopes', 'openid offline_access']
const fine: Readonly<Record<string, Situation>> = {
  'offline_access that the provider does not offer': { ...supporting('openid'), args: ['--scopes', 'openid'] },
  'a provider that does not list its scopes': { discovery: () => ({}), args: ['--scopes', 'openid'] },
  'offline_access with prompt=consent': {
    discovery: () => ({}),
    args: offline,
    env: () => ({ PLATFORM_AUTHORIZATION_PARAMS: 'prompt=login+consent' })
  },
  'a provider that needs no consent': { ...at('/application/o/authorize/', '/application/o/token/'), args: offline }
}

for (const [what, situation] of Object.entries(fine)) {
  test(`check reports no refresh finding for ${what}`, async t => {
    const { found } = await checkAt(t, situation)
    t.is(found('refresh'), undefined)
    t.not(found('client'), undefined, 'the other checks were made')
  })
}

/** Calls a check with the metadata of a provider on the internet, to which it sends no request. */
async function findingsAt(
  t: ExecutionContext,
  issuer: string,
  settings: TestSettings,
  check: (provider: Provider, metadata: ProviderMetadata) => Promise<Finding | Finding[]>
) {
  const provider = openProvider(testConfig(someProvider, settings), Date.now)
  t.teardown(() => provider.transport.close())
  const metadata = { ...(await provider.idp.metadata()), issuer, quirks: quirksOf({ issuer }) }
  return [await check(provider, metadata)].flat()
}

const google: readonly (readonly [authorizationParams: Record<string, string>, ...findings: string[]])[] = [
  [{}, 'failed access_type=offline → platform.authorizationParams access_type=offline&prompt=consent'],
  [{ access_type: 'offline' }, 'warning only first login → prompt=consent platform.authorizationParams'],
  [{ access_type: 'offline', prompt: 'consent' }]
]

for (const [authorizationParams, ...expected] of google) {
  test(`check reports the right refresh finding for Google with ${JSON.stringify(authorizationParams)}`, async t => {
    const platform = { authorizationParams }
    areFindings(t, await findingsAt(t, 'https://accounts.google.com', { platform }, checkRefresh), expected)
  })
}

test('check fails for a logout at Cognito without logout_uri, and sends no request', async t => {
  const issuer = 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a'
  areFindings(t, await findingsAt(t, issuer, { logout: { revoke: false, idp: true } }, checkLogout), [
    'failed Cognito logout_uri → platform.logoutParams logout_uri=http://localhost:8080/ register'
  ])
})

const providers: Readonly<Record<string, readonly [situation: Situation, finding: string]>> = {
  Keycloak: [
    at('/realms/r/protocol/openid-connect/auth', '/realms/r/protocol/openid-connect/token'),
    'ok Keycloak supports dual'
  ],
  Hydra: [at('/oauth2/auth', '/oauth2/token'), 'warning Hydra all scopes → --mode single'],
  'Django OAuth Toolkit': [at('/o/authorize/', '/o/token/'), 'warning Django invalidates internal → --mode single'],
  'any other provider': [at('/oauth2/authorize', '/oauth2/token'), 'ok dual Only login test']
}

for (const [what, [situation, expected]] of Object.entries(providers)) {
  test(`check reports the right dual mode finding for ${what}, and none in single mode`, async t => {
    isFinding(t, (await checkAt(t, { ...situation, args: ['--mode', 'dual'] })).found('refresh'), expected)
    t.is((await checkAt(t, situation)).found('refresh'), undefined)
  })
}

test('check warns about a provider with an issuer but without openid in the scopes', async t => {
  const about = async (situation: Situation) => (await checkAt(t, situation)).allOf('scopes')
  const discovery = () => ({})
  areFindings(t, await about({ discovery, args: ['--scopes', 'data:read'] }), [
    'ok data:read server',
    'warning platform.issuer openid ID token → openid'
  ])
  t.is((await about({ discovery, args: ['--scopes', 'openid data:read'] })).length, 1)
  t.is((await about({})).length, 1)
})
