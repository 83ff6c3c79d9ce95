import test, { type ExecutionContext } from 'ava'
import { discovered } from '../helpers/config.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { type ModeName, modes } from '../helpers/modes.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../helpers/server.js'
import { afterAnHour, authorize, expired, followToCallback, guarded, parameter } from './support.js'

const scopes = {
  scopes: ['openid', 'read', 'write'],
  internalTokenScopes: ['openid', 'read', 'write'],
  publicTokenScopes: ['read']
}

/** Starts a server with a discovery document, and signs nobody in. */
async function start(
  t: ExecutionContext,
  mode: ModeName,
  { platform, ...settings }: NonNullable<TestServerOptions['settings']> = {}
): Promise<TestServer> {
  const idp = await createHostileIdp(t, { callbackUrl: 'http://localhost:8080/api/auth/callback' })
  const withPlatform = { ...settings, platform: { ...discovered(idp), ...scopes, ...platform } }
  return startTestServer(t, { mode, idp, settings: withPlatform })
}

for (const mode of modes) {
  test(`${mode}: a scope that the user has not granted is one warning, and the login succeeds`, async t => {
    const { browser, idp, logs } = await start(t, mode)
    idp.fail('token', faults.change({ scope: 'openid read' }))
    const callbackUrl = await startLogin(browser)
    for (let time = 0; time < 2; time++) t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.deepEqual(
      logs.all('scopes_missing').map(({ scopes }) => scopes),
      ['write']
    )
  })

  test(`${mode}: if nothing was granted, the page says that consent is missing, and the refresh token is revoked`, async t => {
    const { browser, idp } = await start(t, mode)
    idp.fail('token', faults.change({ scope: 'other' }))
    const response = await openCallback(browser, await startLogin(browser))
    t.is(response.statusCode, 403)
    t.true(response.text().includes('Consent is missing'))
    t.true(response.text().includes('consent_required'))
    t.deepEqual(idp.revoked, [idp.issued.refreshTokens[0]?.value])
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })
}

test('Keycloak: a login whose page has expired starts once more by itself, with the same prompt and path, and not twice', async t => {
  const { browser, idp, logs } = await start(t, 'single')
  const first = await authorize(browser, '/api/auth/login?prompt=login&return_to=/b')
  const again = await openCallback(browser, expired(first))
  const second = await followToCallback(browser, again)
  t.is(idp.requestsTo('authorize').at(-1)?.query.prompt, 'login')
  t.is((await openCallback(browser, expired(second))).statusCode, 503)
  t.is((await openCallback(browser, second)).headers.location, '/b')
  t.is(logs.all('login_restarted').length, 1)
})

test('a callback with form_post is refused with a sentence that says what to set', async t => {
  const { browser, idp } = await start(t, 'single')
  const response = await browser.request('POST', '/api/auth/callback', { form: { code: 'a', state: 'b' } })
  t.is(response.statusCode, 405)
  t.regex(response.text(), /response mode of the client at the provider to query/)
  t.is(idp.tokenRequests.length, 0)
})

test('parameters of the operator are sent at the login and at the logout, and an endpoint keeps those of its URL', async t => {
  const { browser, idp } = await start(t, 'single', {
    logout: { revoke: false, idp: true },
    platform: {
      authorizationParams: { access_type: 'offline', p: 'x' },
      logoutParams: { logout_uri: 'https://a.example/' }
    }
  })
  idp.discovery = document => ({ ...document, authorization_endpoint: `${idp.authorizationEndpoint}?p=own` })
  await signIn(browser)
  const { query } = idp.requestsTo('authorize')[0] ?? {}
  t.like(query, { access_type: 'offline', p: 'own', client_id: idp.clientId })
  const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
  t.is(parameter(location, 'logout_uri'), 'https://a.example/')
  t.is(parameter(location, 'client_id'), idp.clientId)
})

test('with empty scopes, neither the login nor a refresh has a scope', async t => {
  const server = await start(t, 'single', { platform: { scopes: [] } })
  const { browser, idp } = server
  idp.settings.quirks = { needsNoScope: true }
  await signIn(browser)
  t.is((await afterAnHour(server)).statusCode, 200)
  t.is(idp.requestsTo('authorize')[0]?.query.scope, undefined)
  t.deepEqual(
    idp.tokenRequests.map(({ form }) => form.scope),
    [undefined, undefined]
  )
})

for (const mode of modes) {
  test(`${mode}: the newest ID token that fits is the hint of a logout, and the URL has at most 2,000 characters`, async t => {
    const hintAfter = async (groups: readonly number[]) => {
      const { browser, idp, clock } = await start(t, mode, { logout: { revoke: false, idp: true } })
      idp.settings.quirks = { idTokenOnRefresh: true }
      for (const [index, count] of groups.entries()) {
        idp.settings.idTokenClaims = claims => ({ ...claims, groups: Array.from({ length: count }, () => 'group') })
        if (index === 0) await signIn(browser)
        else t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
        clock.advanceSeconds(4000)
      }
      const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
      t.true(location.length <= 2000)
      const { searchParams } = new URL(location)
      t.is(searchParams.get('client_id'), idp.clientId)
      const hint = searchParams.get('id_token_hint')
      return hint === null ? undefined : idp.issued.idTokens.indexOf(hint)
    }
    const ofLogin = mode === 'dual' ? 1 : 0
    t.is(await hintAfter([1]), ofLogin)
    t.is(await hintAfter([199]), undefined)
    const newest = await hintAfter([1, 1])
    t.true(newest !== undefined && newest > ofLogin)
    t.is(await hintAfter([1, 199]), ofLogin)
  })

  test(`${mode}: with all endpoints configured, logins, refreshes and logouts work while discovery does not`, async t => {
    const { browser, idp, clock, logs } = await start(t, mode, {
      logout: { revoke: false, idp: true },
      platform: { userinfoEndpoint: undefined }
    })
    const { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint } = idp
    const all = { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint }
    const other = await startTestServer(t, {
      mode,
      idp,
      clock,
      settings: { logout: { revoke: false, idp: true }, platform: { ...discovered(idp), ...scopes, ...all } }
    })
    idp.failWhen('discovery', () => faults.status(503))
    t.is((await browser.navigate('/api/auth/login')).statusCode, 502, 'unknown endpoints are never those of APS')
    await signIn(other.browser)
    clock.advanceSeconds(4000)
    t.is((await other.browser.fetch('/api/auth/profile')).statusCode, 200)
    const { location = '' } = (await other.browser.navigate('/api/auth/logout')).headers
    t.true(location.startsWith(`${endSessionEndpoint}?`))
    t.true(new URL(location).searchParams.has('id_token_hint'))
    t.is(logs.all('endpoint_invalid').length, 0)
  })
}
