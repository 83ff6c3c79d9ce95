import test, { type ExecutionContext } from 'ava'
import { checkRefresh } from '#src/cli/check/client.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkLogout } from '#src/cli/check/login-and-logout.js'
import { openProvider, type Provider } from '#src/cli/check/provider.js'
import type { ProviderMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import type { HostileIdp } from '../../helpers/hostile-idp/index.js'
import { checkAt, type Situation, someProvider } from './checked.js'

// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.

const dual = ['--mode', 'dual']
const offline =
  'warning refresh The provider offers the scope offline_access, but the settings do not request it. Many providers issue a refresh token only with this scope. Next: Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'

const withoutConsent =
  'warning refresh The settings request offline_access without prompt=consent. Some providers, such as Logto, then issue no refresh token (OpenID Connect Core section 11), and every login fails. Next: Sign in once. If the log says "it issued no refresh_token", add prompt=consent to platform.authorizationParams.'

const offers: readonly (readonly [what: string, supported: unknown, scopes: string, line: string | undefined])[] = [
  ['offered and not requested', ['openid', 'offline_access'], 'openid', offline],
  ['offered and requested', ['openid', 'offline_access'], 'openid offline_access', withoutConsent],
  ['not offered', ['openid'], 'openid', undefined],
  ['not mentioned in the discovery document', undefined, 'openid', undefined]
]

for (const [what, scopes_supported, scopes, expected] of offers) {
  test(`check reports the right finding for offline_access that is ${what}`, async t => {
    const { line, code } = await checkAt(t, { args: ['--scopes', scopes], discovery: () => ({ scopes_supported }) })
    t.is(line('refresh'), expected)
    t.is(code, 0)
  })
}

test('check accepts offline_access with prompt=consent, and at providers that need no consent', async t => {
  const args = ['--scopes', 'openid offline_access']
  const consenting = await checkAt(t, { args: [...args, '--prompt', 'login consent'], discovery: () => ({}) })
  t.is(consenting.line('refresh'), undefined)
  const discovery = ({ issuer }: HostileIdp) => ({
    authorization_endpoint: `${issuer}/application/o/authorize/`,
    token_endpoint: `${issuer}/application/o/token/`
  })
  t.is((await checkAt(t, { args, discovery })).line('refresh'), undefined)
})

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
  return [await check(provider, metadata)].flat().map(({ status, message, next }) => `${status} ${message} ${next}`)
}

const google: readonly (readonly [platform: NonNullable<TestSettings['platform']>, lines: readonly string[]])[] = [
  [
    {},
    [
      'failed Google issues a refresh token only with the parameter access_type=offline, so every login fails. Set platform.authorizationParams to access_type=offline&prompt=consent.'
    ]
  ],
  [
    { authorizationParams: { access_type: 'offline' } },
    [
      'warning Google issues a refresh token only when the user consents, so only the first login of a user works. Add prompt=consent to platform.authorizationParams.'
    ]
  ],
  [{ authorizationParams: { access_type: 'offline', prompt: 'consent' } }, []]
]

for (const [platform, expected] of google) {
  test(`check reports the right refresh finding for Google with ${JSON.stringify(platform)}`, async t => {
    t.deepEqual(await findingsAt(t, 'https://accounts.google.com', { platform }, checkRefresh), expected)
  })
}

test('check fails for a logout at Cognito without logout_uri, and sends no request', async t => {
  const issuer = 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a'
  t.deepEqual(await findingsAt(t, issuer, { logout: { revoke: false, idp: true } }, checkLogout), [
    'failed Amazon Cognito requires the parameter logout_uri at a logout, so users see its error page. Set platform.logoutParams to logout_uri=http://localhost:8080/, and register this URL as an allowed sign-out URL.'
  ])
})

const single = 'Next: Use --mode single, unless a login in dual mode works with your version.'
const dualModeFindings: readonly (readonly [what: string, paths: readonly [string, string], line: string])[] = [
  [
    'Keycloak',
    ['/realms/r/protocol/openid-connect/auth', '/realms/r/protocol/openid-connect/token'],
    'ok refresh This looks like Keycloak, which supports dual mode: a refresh can request only the public scopes, and the next refresh can request all scopes again.'
  ],
  [
    'Hydra',
    ['/oauth2/auth', '/oauth2/token'],
    `warning refresh This looks like Ory Hydra, which returns all scopes of the login at every refresh. Dual mode does not accept a public token with all scopes. ${single}`
  ],
  [
    'Django OAuth Toolkit',
    ['/o/authorize/', '/o/token/'],
    `warning refresh This looks like Django OAuth Toolkit, which invalidates the internal token and its scopes when it issues the public token. ${single}`
  ],
  [
    'any other provider',
    ['/oauth2/authorize', '/oauth2/token'],
    'ok refresh Dual mode needs a provider where a refresh can request only the public scopes, and the next refresh can request all scopes again. Only a login can test that.'
  ]
]

for (const [what, [authorization, token], expected] of dualModeFindings) {
  test(`check reports the right dual mode finding for ${what}`, async t => {
    const discovery = ({ issuer }: HostileIdp) => ({
      authorization_endpoint: issuer + authorization,
      token_endpoint: issuer + token
    })
    t.is((await checkAt(t, { args: dual, discovery })).line('refresh'), expected)
    // In single mode there is no finding, because it uses one token.
    t.is((await checkAt(t, { discovery })).line('refresh'), undefined)
  })
}

test('check warns about a provider with an issuer but without openid in the scopes', async t => {
  const warning =
    'warning scopes platform.issuer is set, but openid is not among the scopes, so no ID token proves who signs in. Next: Add openid to the scopes, unless this provider supports only OAuth 2.0.'
  const about = async (situation: Situation) =>
    (await checkAt(t, situation)).lines.filter(line => line.split(' ')[1] === 'scopes')
  const discovery = () => ({})
  const without = await about({ discovery, args: ['--scopes', 'data:read'] })
  t.deepEqual(without, ['ok scopes The token (data:read) stays on the server.', warning])
  t.is((await about({ discovery, args: ['--scopes', 'openid data:read'] })).length, 1)
  t.is((await about({})).length, 1)
})
