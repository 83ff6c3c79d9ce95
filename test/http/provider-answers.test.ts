// Responses of real providers that deviate from the standards, in both modes: what users, operators and pages see.
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
import { authorize } from './support.js'

const scopes = {
  scopes: ['openid', 'read', 'write'],
  internalScopes: ['openid', 'read', 'write'],
  publicScopes: ['read']
}

/** Starts a server with a discovery document, and signs nobody in. */
async function start(
  t: ExecutionContext,
  mode: ModeName,
  { platform, ...overrides }: NonNullable<TestServerOptions['overrides']> = {}
): Promise<TestServer> {
  const idp = await createHostileIdp(t, { callbackUrl: 'http://localhost:8080/api/auth/callback' })
  const settings = { ...overrides, platform: { ...discovered(idp), ...scopes, ...platform } }
  return startTestServer(t, { mode, idp, overrides: settings })
}

/** Members of the first token response of a login, and the scopes of the warning. */
const tokenResponses: readonly (readonly [what: string, members: Record<string, unknown>, missing?: string])[] = [
  ['Google: the user unticked a scope', { scope: 'openid read' }, 'write'],
  ['GitHub: commas', { scope: 'openid,read,write' }],
  ['Twitch: a list', { scope: ['openid', 'read', 'write'] }],
  ['GitHub Apps: an empty scope', { scope: '' }],
  ['Azure AD B2C: digits', { expires_in: '3599' }],
  ['GitHub: no expires_in', { expires_in: undefined }],
  ['Apigee: BearerToken', { token_type: 'BearerToken' }]
]

for (const mode of modes) {
  for (const [what, members, missing] of tokenResponses) {
    test(`${mode}: a login succeeds with the token response of ${what}`, async t => {
      const { browser, idp, logs } = await start(t, mode)
      idp.fail('token', faults.change(members))
      const callbackUrl = await startLogin(browser)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      const warnings = logs.all('scopes_missing')
      t.deepEqual(
        warnings.map(line => line.scopes),
        missing === undefined ? [] : [missing]
      )
    })
  }

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

  test(`${mode}: a token response with status 201 is a success`, async t => {
    const { browser, idp } = await start(t, mode)
    idp.failWhen(
      'token',
      () =>
        ({ process, send }) =>
          send({ ...process(), status: 201 })
    )
    await signIn(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })
}

const expired = (callbackUrl: string) => {
  const url = new URL(callbackUrl)
  url.searchParams.delete('code')
  url.searchParams.set('error', 'temporarily_unavailable')
  url.searchParams.set('error_description', 'authentication_expired')
  return url.href
}

test('Keycloak: a login whose page has expired starts once more by itself, with the same prompt and path, and not twice', async t => {
  const { browser, idp, logs, newBrowser } = await start(t, 'single')
  const first = await authorize(browser, '/api/auth/login?prompt=login&return_to=/b')
  t.is((await openCallback(newBrowser(), expired(first))).statusCode, 400, 'another browser')
  const again = await openCallback(browser, expired(first))
  t.is(again.statusCode, 302)
  const { origin, searchParams } = new URL(again.headers.location ?? '')
  t.is(origin, idp.issuer)
  t.is(searchParams.get('prompt'), 'login')
  const { location: second = '' } = (
    await browser.navigate(again.headers.location ?? '', { from: browser.origin ?? '' })
  ).headers
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
    logout: 'idp',
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
  t.is(new URL(location).searchParams.get('logout_uri'), 'https://a.example/')
  t.is(new URL(location).searchParams.get('client_id'), idp.clientId)
})

test('with empty scopes, neither the login nor a refresh has a scope', async t => {
  const { browser, idp, clock } = await start(t, 'single', { platform: { scopes: [] } })
  idp.settings.quirks = { needsNoScope: true }
  await signIn(browser)
  clock.advanceSeconds(4000)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is(idp.requestsTo('authorize')[0]?.query.scope, undefined)
  t.deepEqual(
    idp.tokenRequests.map(({ form }) => form.scope),
    [undefined, undefined]
  )
})

for (const mode of modes) {
  test(`${mode}: the newest ID token that fits is the hint of a logout, and the URL has at most 2,000 characters`, async t => {
    const hintAfter = async (groups: readonly number[]) => {
      const { browser, idp, clock } = await start(t, mode, { logout: 'idp' })
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
      logout: 'idp',
      platform: { userinfoEndpoint: undefined }
    })
    const { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint } = idp
    const all = { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint }
    const other = await startTestServer(t, {
      mode,
      idp,
      clock,
      overrides: { logout: 'idp', platform: { ...discovered(idp), ...scopes, ...all } }
    })
    idp.failWhen('discovery', () => faults.status(503))
    t.is((await browser.navigate('/api/auth/login')).statusCode, 502, 'unknown endpoints are never those of APS')
    await signIn(other.browser)
    clock.advanceSeconds(4000)
    t.is((await other.browser.fetch('/api/auth/profile')).statusCode, 200)
    const { location = '' } = (await other.browser.navigate('/api/auth/logout')).headers
    t.true(location.startsWith(`${endSessionEndpoint}?`))
    t.true(new URL(location).searchParams.has('id_token_hint'))
    t.is(logs.all('endpoint_unusable').length, 0)
  })

  test(`${mode}: endpoints of the discovery document that cannot be used are off with one warning each`, async t => {
    const { browser, idp, logs } = await start(t, mode)
    idp.discovery = document => ({
      ...document,
      revocation_endpoint: null,
      end_session_endpoint: '',
      userinfo_endpoint: 'http://idp.example/userinfo'
    })
    await signIn(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(logs.all('endpoint_unusable').length, 3)
  })
}
