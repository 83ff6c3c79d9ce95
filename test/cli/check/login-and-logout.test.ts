import test from 'ava'
import { faults, quirksOf } from '../../helpers/hostile-idp/index.js'
import { callbackUrl, checkAt, type Situation } from './checked.js'

const registerCallback = `Register exactly ${callbackUrl} for the client test-client.`

const unregistered = { callbackUrl: 'http://127.0.0.1:8080/api/auth/callback' }

const loginTable: Readonly<Record<string, readonly [situation: Situation, line: string]>> = {
  'a login that is accepted': [{}, 'ok login The authorization endpoint accepts this login (302).'],
  'an HTML page': [
    { prepare: idp => idp.fail('authorize', faults.html(200)) },
    'ok login The authorization endpoint responds with a page (200). Open it in a browser to see if it is the login page.'
  ],
  'a callback URL that is not registered': [
    unregistered,
    `failed login The authorization endpoint rejects the client or the callback URL (400). Next: ${registerCallback}`
  ],
  'a scope that is refused': [
    { provider: () => ({ login: { error: 'invalid_scope', errorDescription: 'not yours' } }) },
    'failed login The authorization endpoint rejects this login: invalid_scope. Next: Request only scopes that the provider knows and the application may use.'
  ],
  'another error': [
    { provider: () => ({ login: { error: 'access_denied' } }) },
    "failed login The authorization endpoint rejects this login: access_denied. Next: Look for this code in the provider's documentation."
  ],
  'an error whose code is the name of a member that every object has': [
    { provider: () => ({ login: { error: 'constructor' } }) },
    "failed login The authorization endpoint rejects this login: constructor. Next: Look for this code in the provider's documentation."
  ],
  'an error that is not a valid code': [
    { provider: () => ({ login: { error: '<b>no</b>' } }) },
    "failed login The authorization endpoint rejects this login: an error without a proper code. Next: Look for this code in the provider's documentation."
  ],
  'a provider that first redirects to its own page with a cookie': [
    { provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint } }) },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  'an error after the redirect to such a page': [
    { provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint }, login: { error: 'invalid_scope' } }) },
    'failed login The authorization endpoint rejects this login: invalid_scope. Next: Request only scopes that the provider knows and the application may use.'
  ],
  'a callback URL that is not registered, with an error page of the provider': [
    { ...unregistered, provider: idp => ({ quirks: { errorPage: `${idp.issuer}/error` } }) },
    `failed login The authorization endpoint rejects the client or the callback URL: invalid_request. Next: ${registerCallback}`
  ],
  'a sign-in page on another host': [
    { prepare: idp => idp.fail('authorize', faults.redirect('https://pages.example/login?challenge=c')) },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  'endless redirects': [
    { prepare: idp => idp.failWhen('authorize', () => faults.redirect(idp.authorizationEndpoint)) },
    "failed login The authorization endpoint is unusable: it redirects in circles. Next: Compare platform.authorizationEndpoint with the provider's documentation."
  ],
  'a provider that requires a user to sign in': [
    { provider: () => ({ login: { error: 'login_required' } }) },
    'ok login The authorization endpoint accepts this login (302).'
  ],
  'a page that rejects requests of programs': [
    { prepare: idp => idp.fail('authorize', faults.html(403)) },
    'warning login The authorization endpoint responds with 403. It rejects either this login or all requests that do not come from a browser. Next: Open the login in a browser. If it fails there too, check the callback URL.'
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_AUTHORIZATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed login The authorization endpoint responds with 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.authorizationEndpoint with the provider's documentation."
  ]
}

for (const [what, [situation, expected]] of Object.entries(loginTable)) {
  test(`check reports the right login finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('login'), expected.replace('ISSUER', idp.issuer))
  })
}

test('check requests the same authorization URL to which the login route redirects browsers', async t => {
  const { idp } = await checkAt(t, { args: ['--mode', 'dual', '--internal-token-scopes', 'openid viewables:read'] })
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

test('a 404 from a discovered endpoint is reported as an unknown client, because this is the response of Dex', async t => {
  const { line } = await checkAt(t, { discovery: () => ({}), prepare: idp => idp.fail('authorize', faults.html(404)) })
  t.is(
    line('login'),
    `failed login The authorization endpoint rejects the client or the callback URL (404). Next: ${registerCallback}`
  )
})

const idpOnly = { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_AUTH_LOGOUT_REVOKE: 'false' }

const logoutTable: Readonly<Record<string, readonly [situation: Situation, line: string]>> = {
  'a working revocation endpoint': [{}, 'ok logout The revocation endpoint accepts requests.'],
  'a wrong secret at Keycloak': [
    {
      provider: () => ({ quirks: quirksOf.keycloak }),
      env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' })
    },
    'failed logout The revocation endpoint rejects the client (401 unauthorized_client). Next: Fix the client finding first. If the client finding is ok, set logout.revoke to false.'
  ],
  'a wrong secret': [
    { env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' }) },
    'failed logout The revocation endpoint rejects the client (401 invalid_client). Next: Fix the client finding first. If the client finding is ok, set logout.revoke to false.'
  ],
  'a revocation endpoint that rejects a made-up token': [
    { prepare: idp => idp.fail('revoke', faults.error('invalid_request')) },
    'warning logout The revocation endpoint rejects a made-up token (400 invalid_request), so this check cannot tell if it accepts a real one. Next: Sign in and out once, and look for revocation_failed in the log.'
  ],
  'a revocation endpoint that is switched off': [
    { env: () => ({ PLATFORM_REVOCATION_ENDPOINT: 'none' }) },
    'ok logout Revocation is switched off, so refresh tokens stay valid after a logout.'
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_REVOCATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed logout The revocation endpoint responds with 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.revocationEndpoint with the provider's documentation."
  ],
  "a logout that ends only this server's session": [
    { env: () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' }) },
    'ok logout A logout ends only the session of this server. The server does not inform the provider.'
  ],
  'an end-session endpoint': [
    { env: () => idpOnly },
    'ok logout The end-session endpoint responds (302). http://localhost:8080/ must be registered as a URL to return to.'
  ],
  'an end-session endpoint that rejects the URL to return to': [
    { env: () => idpOnly, prepare: idp => idp.fail('endSession', faults.html(400)) },
    'failed logout The end-session endpoint rejects the request (400). Next: Register http://localhost:8080/ with the provider as a URL to return to after logout.'
  ],
  'an end-session endpoint that does not exist': [
    { env: idp => ({ ...idpOnly, PLATFORM_END_SESSION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed logout The end-session endpoint responds with 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.endSessionEndpoint with the provider's documentation."
  ],
  'an end-session endpoint that cannot be reached': [
    { env: () => ({ ...idpOnly, PLATFORM_END_SESSION_ENDPOINT: 'http://127.0.0.1:1/logout' }) },
    'failed logout The end-session endpoint cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in platform.endSessionEndpoint. If they are right, no server listens there or a firewall rejects the connection.'
  ]
}

for (const [what, [situation, expected]] of Object.entries(logoutTable)) {
  test(`check reports the right logout finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('logout'), expected.replace('ISSUER', idp.issuer))
  })
}

const missing: readonly (readonly [env: Readonly<Record<string, string>>, member: string, line: string])[] = [
  [
    {},
    'revocation_endpoint',
    'warning logout The discovery document has no usable revocation endpoint, so refresh tokens stay valid after a logout. Next: Set platform.revocationEndpoint, or set logout.revoke to false.'
  ],
  [
    idpOnly,
    'end_session_endpoint',
    'failed logout The discovery document has no usable end-session endpoint, so a logout does not sign out at the provider. Next: Set platform.endSessionEndpoint, or set logout.idp to false.'
  ]
]

for (const [env, member, expected] of missing) {
  test(`check reports that the discovery document has no ${member}`, async t => {
    t.is((await checkAt(t, { env: () => env, discovery: () => ({ [member]: undefined }) })).line('logout'), expected)
  })
}

test('check warns about an end-session endpoint that redirects to an error page, because it may require the ID token', async t => {
  const provider = () => ({ quirks: { needsIdTokenHint: true } })
  const { line, code } = await checkAt(t, { env: () => idpOnly, discovery: () => ({}), provider })
  t.is(
    line('logout'),
    'warning logout The end-session endpoint rejects a logout without an ID token: invalid_request. Next: Register http://localhost:8080/ with the provider as a URL to return to after logout. If it is registered, sign in and out once, because some providers require the ID token.'
  )
  t.is(code, 0)
})

test('check tests both endpoints if a logout uses both', async t => {
  const { lines } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_LOGOUT_IDP: 'true' }) })
  t.deepEqual(
    lines.filter(line => line.startsWith('ok logout')).map(line => line.split(' ').slice(2, 5).join(' ')),
    ['The revocation endpoint', 'The end-session endpoint']
  )
})

test('check names the shorter time limit of a revocation', async t => {
  const { line } = await checkAt(t, { prepare: idp => idp.failWhen('revoke', () => faults.hang()) })
  t.regex(line('logout') ?? '', /^failed logout The revocation endpoint .* did not respond within 2 s\./)
})
