import test from 'ava'
import type { HostileIdp } from '../../helpers/hostile-idp/index.js'
import { checkAt, type Situation } from './checked.js'

// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.

const dual = ['--mode', 'dual']
const offline =
  'warning refresh The provider offers the scope offline_access, but the settings do not request it. Many providers issue a refresh token only with this scope. Next: Add offline_access to the scopes, unless the provider issues refresh tokens without it (Keycloak does).'

const offers: readonly (readonly [what: string, supported: unknown, scopes: string, line: string | undefined])[] = [
  ['offered and not requested', ['openid', 'offline_access'], 'openid', offline],
  ['offered and requested', ['openid', 'offline_access'], 'openid offline_access', undefined],
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
