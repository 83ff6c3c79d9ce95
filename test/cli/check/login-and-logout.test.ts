import test from 'ava'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { faults, quirksOf } from '../../helpers/hostile-idp/index.js'
import { checkAt, testFindings } from './checked.js'

const unregistered = { callbackUrl: 'http://127.0.0.1:8080/api/auth/callback' }

testFindings('login', {
  'an HTML page': { prepare: idp => idp.fail('authorize', faults.html(200)) },
  'a callback URL that is not registered': unregistered,
  'a scope that is refused': { provider: () => ({ login: { error: 'invalid_scope', errorDescription: 'not yours' } }) },
  'another error': { provider: () => ({ login: { error: 'access_denied' } }) },
  'an error whose code is the name of a member that every object has': {
    provider: () => ({ login: { error: 'constructor' } })
  },
  'an error that is not a valid code': { provider: () => ({ login: { error: '<b>no</b>' } }) },
  'a provider that first redirects to its own page with a cookie': {
    provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint } })
  },
  'an error after the redirect to such a page': {
    provider: idp => ({ quirks: { loginPage: idp.authorizationEndpoint }, login: { error: 'invalid_scope' } })
  },
  'a callback URL that is not registered, with an error page of the provider': {
    ...unregistered,
    provider: idp => ({ quirks: { errorPage: `${idp.issuer}/error` } })
  },
  'a sign-in page on another host': {
    prepare: idp => idp.fail('authorize', faults.redirect('https://pages.example/login?challenge=c'))
  },
  'endless redirects': { prepare: idp => idp.failWhen('authorize', () => faults.redirect(idp.authorizationEndpoint)) },
  'a provider that requires a user to sign in': { provider: () => ({ login: { error: 'login_required' } }) },
  'a page that rejects requests of programs': { prepare: idp => idp.fail('authorize', faults.html(403)) },
  'an address without an endpoint': { env: idp => ({ PLATFORM_AUTHORIZATION_ENDPOINT: `${idp.issuer}/nothing` }) },
  'a discovered endpoint that responds with 404, as Dex does for an unknown client': {
    discovery: () => ({}),
    prepare: idp => idp.fail('authorize', faults.html(404))
  }
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

testFindings('logout', {
  'a wrong secret at Keycloak': {
    provider: () => ({ quirks: quirksOf.keycloak }),
    env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' })
  },
  'a revocation endpoint that rejects a made-up token': {
    prepare: idp => idp.fail('revoke', faults.error('invalid_request'))
  },
  'a revocation endpoint that is switched off': { env: () => ({ PLATFORM_REVOCATION_ENDPOINT: 'none' }) },
  'a revocation endpoint that does not respond in its shorter time limit': {
    prepare: idp => idp.failWhen('revoke', () => faults.hang())
  },
  'an address without an endpoint': { env: idp => ({ PLATFORM_REVOCATION_ENDPOINT: `${idp.issuer}/nothing` }) },
  "a logout that ends only this server's session": { env: () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' }) },
  'an end-session endpoint': { env: () => idpOnly },
  'an end-session endpoint that rejects the URL to return to': {
    env: () => idpOnly,
    prepare: idp => idp.fail('endSession', faults.html(400))
  },
  // The endpoint may require the ID token.
  'an end-session endpoint that redirects to an error page': {
    env: () => idpOnly,
    discovery: () => ({}),
    provider: () => ({ quirks: { needsIdTokenHint: true } })
  },
  'an end-session endpoint that does not exist': {
    env: idp => ({ ...idpOnly, PLATFORM_END_SESSION_ENDPOINT: `${idp.issuer}/nothing` })
  },
  'a discovery document without a revocation endpoint': { discovery: () => ({ revocation_endpoint: undefined }) },
  'a discovery document without an end-session endpoint': {
    env: () => idpOnly,
    discovery: () => ({ end_session_endpoint: undefined })
  }
})

testFindings('logout', { 'both endpoints': { env: () => ({ PLATFORM_AUTH_LOGOUT_IDP: 'true' }) } })
