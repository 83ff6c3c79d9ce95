import test from 'ava'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { faults, quirksOf } from '../../helpers/hostile-idp/index.js'
import { areFindings, checkAt, testFindings } from './checked.js'

const unregistered = { callbackUrl: 'http://127.0.0.1:8080/api/auth/callback' }
const register = `${defaultCallbackUrl} test-client`

testFindings('login', {
  'an HTML page': [{ prepare: idp => idp.fail('authorize', faults.html(200)) }, 'ok page 200 browser'],
  'a callback URL that is not registered': [unregistered, `failed client callback 400 → ${register}`],
  'a scope that is refused': [
    { provider: () => ({ login: { error: 'invalid_scope', errorDescription: 'not yours' } }) },
    'failed rejects invalid_scope → scopes'
  ],
  'another error': [
    { provider: () => ({ login: { error: 'access_denied' } }) },
    'failed access_denied → documentation'
  ],
  'an error whose code is the name of a member that every object has': [
    { provider: () => ({ login: { error: 'constructor' } }) },
    'failed constructor → documentation'
  ],
  'an error that is not a valid code': [
    { provider: () => ({ login: { error: '<b>no</b>' } }) },
    'failed without proper code → documentation'
  ],
  'a provider that first redirects to its own page with a cookie': [
    { provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint } }) },
    'ok accepts 302'
  ],
  'an error after the redirect to such a page': [
    { provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint }, login: { error: 'invalid_scope' } }) },
    'failed rejects invalid_scope → scopes'
  ],
  'a callback URL that is not registered, with an error page of the provider': [
    { ...unregistered, provider: idp => ({ quirks: { errorPage: `${idp.issuer}/error` } }) },
    `failed client callback invalid_request → ${register}`
  ],
  'a sign-in page on another host': [
    { prepare: idp => idp.fail('authorize', faults.redirect('https://pages.example/login?challenge=c')) },
    'ok accepts 302'
  ],
  'endless redirects': [
    { prepare: idp => idp.failWhen('authorize', () => faults.redirect(idp.authorizationEndpoint)) },
    'failed circles → platform.authorizationEndpoint'
  ],
  'a provider that requires a user to sign in': [
    { provider: () => ({ login: { error: 'login_required' } }) },
    'ok accepts 302'
  ],
  'a page that rejects requests of programs': [
    { prepare: idp => idp.fail('authorize', faults.html(403)) },
    'warning 403 browser → browser callback'
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_AUTHORIZATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    'failed 404 ISSUER/nothing → platform.authorizationEndpoint'
  ],
  'a discovered endpoint that responds with 404, as Dex does for an unknown client': [
    { discovery: () => ({}), prepare: idp => idp.fail('authorize', faults.html(404)) },
    `failed client callback 404 → ${register}`
  ]
})

test('check requests the same authorization URL to which the login route redirects browsers', async t => {
  const { idp } = await checkAt(t, { args: ['--mode', 'dual', '--internal-token-scopes', 'openid viewables:read'] })
  const { query } = idp.requestsTo('authorize')[0] ?? {}
  t.like(query, {
    client_id: 'test-client',
    redirect_uri: defaultCallbackUrl,
    scope: 'openid viewables:read',
    code_challenge_method: 'S256'
  })
  t.truthy(query?.nonce)
  t.truthy(query?.state)
})

const idpOnly = { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_AUTH_LOGOUT_REVOKE: 'false' }
const returnTo = 'http://localhost:8080/'

testFindings('logout', {
  'a wrong secret at Keycloak': [
    { provider: () => ({ quirks: quirksOf.keycloak }), env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' }) },
    'failed revocation client 401 unauthorized_client → logout.revoke false'
  ],
  'a revocation endpoint that rejects a made-up token': [
    { prepare: idp => idp.fail('revoke', faults.error('invalid_request')) },
    'warning revocation 400 invalid_request → revocation_failed log'
  ],
  'a revocation endpoint that is switched off': [
    { env: () => ({ PLATFORM_REVOCATION_ENDPOINT: 'none' }) },
    'ok refresh tokens stay valid'
  ],
  'a revocation endpoint that does not respond in its shorter time limit': [
    { prepare: idp => idp.failWhen('revoke', () => faults.hang()) },
    'failed revocation 2 s'
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_REVOCATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    'failed revocation 404 ISSUER/nothing → platform.revocationEndpoint'
  ],
  "a logout that ends only this server's session": [
    { env: () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' }) },
    'ok only session of this server'
  ],
  'an end-session endpoint': [{ env: () => idpOnly }, `ok end-session 302 ${returnTo} registered`],
  'an end-session endpoint that rejects the URL to return to': [
    { env: () => idpOnly, prepare: idp => idp.fail('endSession', faults.html(400)) },
    `failed end-session rejects 400 → ${returnTo}`
  ],
  // The endpoint may require the ID token.
  'an end-session endpoint that redirects to an error page': [
    { env: () => idpOnly, discovery: () => ({}), provider: () => ({ quirks: { needsIdTokenHint: true } }) },
    `warning end-session ID token invalid_request → ${returnTo} ID token`
  ],
  'an end-session endpoint that does not exist': [
    { env: idp => ({ ...idpOnly, PLATFORM_END_SESSION_ENDPOINT: `${idp.issuer}/nothing` }) },
    'failed end-session 404 ISSUER/nothing → platform.endSessionEndpoint'
  ],
  'a discovery document without a revocation endpoint': [
    { discovery: () => ({ revocation_endpoint: undefined }) },
    'warning discovery no revocation → platform.revocationEndpoint logout.revoke false'
  ],
  'a discovery document without an end-session endpoint': [
    { env: () => idpOnly, discovery: () => ({ end_session_endpoint: undefined }) },
    'failed discovery no end-session → platform.endSessionEndpoint logout.idp false'
  ]
})

test('check tests both endpoints if a logout uses both', async t => {
  const { allOf } = await checkAt(t, { env: () => ({ PLATFORM_AUTH_LOGOUT_IDP: 'true' }) })
  areFindings(t, allOf('logout'), ['ok revocation accepts', 'ok end-session 302'])
})
