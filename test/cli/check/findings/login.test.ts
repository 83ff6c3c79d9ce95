import test from 'ava'
import { createHostileIdp, faults } from '../../../helpers/hostile-idp/index.js'
import { callbackUrl, check, checkAt, discovering, type Situation } from '../checked.js'

const register = `Register exactly ${callbackUrl} for the client test-client.`

const table: readonly (readonly [what: string, situation: Situation, line: string])[] = [
  ['a login that is accepted', {}, 'ok login The authorization endpoint accepts this login (302).'],
  [
    'an HTML page',
    { prepare: idp => idp.fail('authorize', faults.html(200)) },
    'ok login The authorization endpoint answers with a page (200). Open it in a browser to see if it is the login page.'
  ],
  [
    'a callback URL that is not registered',
    { callbackUrl: 'http://127.0.0.1:8080/api/auth/callback' },
    `failed login The authorization endpoint rejects the client or the callback URL (400). Next: ${register}`
  ],
  [
    'an unknown client',
    { clientId: 'another-client', env: () => ({ PLATFORM_CLIENT_ID: 'test-client' }) },
    `failed login The authorization endpoint rejects the client or the callback URL (400). Next: ${register}`
  ],
  [
    'a scope that is refused',
    {
      prepare: idp => {
        idp.settings.login = { error: 'invalid_scope', errorDescription: 'not yours' }
      }
    },
    'failed login The authorization endpoint rejects this login: invalid_scope. Next: Request only scopes that the provider knows and the application may use.'
  ],
  [
    'another error',
    {
      prepare: idp => {
        idp.settings.login = { error: 'access_denied' }
      }
    },
    "failed login The authorization endpoint rejects this login: access_denied. Next: Look for this code in the provider's documentation."
  ],
  [
    'an error that is not a valid code',
    {
      prepare: idp => {
        idp.settings.login = { error: '<b>no</b>' }
      }
    },
    "failed login The authorization endpoint rejects this login: an error without a proper code. Next: Look for this code in the provider's documentation."
  ],
  [
    'a provider that first redirects to its own page with a cookie',
    {
      prepare: idp => {
        idp.settings.quirks = { loginPage: idp.authorizationEndpoint }
      }
    },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  [
    'an error after the redirect to such a page',
    {
      prepare: idp => {
        idp.settings.quirks = { loginPage: idp.authorizationEndpoint }
        idp.settings.login = { error: 'invalid_scope' }
      }
    },
    'failed login The authorization endpoint rejects this login: invalid_scope. Next: Request only scopes that the provider knows and the application may use.'
  ],
  [
    'a callback URL that is not registered, after the redirect to such a page',
    {
      callbackUrl: 'http://127.0.0.1:8080/api/auth/callback',
      prepare: idp => {
        idp.settings.quirks = { loginPage: idp.authorizationEndpoint }
      }
    },
    `failed login The authorization endpoint rejects the client or the callback URL (400). Next: ${register}`
  ],
  [
    'a callback URL that is not registered, with an error page of the provider',
    {
      callbackUrl: 'http://127.0.0.1:8080/api/auth/callback',
      prepare: idp => {
        idp.settings.quirks = { errorPage: `${idp.issuer}/error` }
      }
    },
    `failed login The authorization endpoint rejects the client or the callback URL: invalid_request. Next: ${register}`
  ],
  [
    'a callback URL that is not registered, with an error page on another host',
    {
      callbackUrl: 'http://127.0.0.1:8080/api/auth/callback',
      prepare: idp => {
        idp.settings.quirks = { errorPage: 'https://pages.example/error' }
      }
    },
    `failed login The authorization endpoint rejects the client or the callback URL: invalid_request. Next: ${register}`
  ],
  [
    'a sign-in page on another host',
    { prepare: idp => idp.fail('authorize', faults.redirect('https://pages.example/login?challenge=c')) },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  [
    'endless redirects',
    { prepare: idp => idp.failWhen('authorize', () => faults.redirect(idp.authorizationEndpoint)) },
    "failed login The authorization endpoint is unusable: it redirects in circles. Next: Compare platform.authorizationEndpoint with the provider's documentation."
  ],
  [
    'a provider that requires a person to sign in',
    {
      prepare: idp => {
        idp.settings.login = { error: 'login_required' }
      }
    },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  [
    'a page that rejects requests of programs',
    { prepare: idp => idp.fail('authorize', faults.html(403)) },
    'warning login The authorization endpoint answers 403. It rejects either this login or all requests that do not come from a browser. Next: Open the login in a browser. If it fails there too, check the callback URL.'
  ],
  [
    'an address without an endpoint',
    { env: idp => ({ PLATFORM_AUTHORIZATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed login The authorization endpoint answers 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.authorizationEndpoint with the provider's documentation."
  ]
]

for (const [what, situation, expected] of table) {
  test(`check reports the right login finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('login'), expected.replace('ISSUER', idp.issuer))
  })
}

test('check requests the same authorization URL to which the login route redirects browsers', async t => {
  const { idp } = await checkAt(t, { args: ['--mode', 'dual', '--internal-scopes', 'openid viewables:read'] })
  const { query } = idp.requestsTo('authorize')[0] ?? {}
  t.like(query, {
    client_id: 'test-client',
    redirect_uri: callbackUrl,
    scope: 'openid viewables:read',
    code_challenge_method: 'S256'
  })
  t.truthy(query?.nonce)
  t.truthy(query?.state)
})

test('a 404 from a discovered endpoint is reported as an unknown client, because Dex answers so', async t => {
  const idp = await createHostileIdp(t)
  idp.fail('authorize', faults.html(404))
  const { line } = await check(t, [], { env: discovering(idp) })
  t.is(
    line('login'),
    `failed login The authorization endpoint rejects the client or the callback URL (404). Next: ${register}`
  )
})
