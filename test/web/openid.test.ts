// OpenID Connect from the view of a relying party. The table contains the conformance tests of the OpenID Foundation that apply
// to this server. They come from the plans for the basic and config profiles with the code flow, for RP-initiated logout and
// for refresh tokens.
import test, { type ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'
import { discovered, type TestSettings } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp, type Fault, faults, type Quirks } from '../helpers/hostile-idp/index.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../helpers/server.js'
import { afterAnHour, sessionCookies, sessionHeader } from './support.js'

const scopes = {
  scopes: ['openid', 'data:read'],
  internalTokenScopes: ['openid', 'data:read'],
  publicTokenScopes: ['data:read']
}

interface Setup {
  readonly quirks?: Quirks
  readonly logout?: Config['logout']
  readonly platform?: NonNullable<TestSettings['platform']>
  readonly clientSecret?: string
}

async function start(
  t: ExecutionContext,
  mode: ModeName,
  { quirks = {}, logout = { revoke: true, idp: false }, platform, ...rest }: Setup = {}
) {
  const idp = await createHostileIdp(t, { callbackUrl: 'http://localhost:8080/api/auth/callback', ...rest })
  idp.settings.quirks = quirks
  const settings = { logout, platform: { ...discovered(idp), ...scopes, ...platform } }
  return startTestServer(t, { mode, idp, settings })
}

/** Signs in, lets the tokens expire, and asks for the profile. */
async function refreshed(server: TestServer) {
  await signIn(server.browser)
  return afterAnHour(server)
}

/** Returns the status of the callback of a login. */
async function statusOfLogin({ browser }: TestServer) {
  return (await openCallback(browser, await startLogin(browser))).statusCode
}

/** Returns the status of the callback when the given claims replace those of the ID token. */
const loginWith = (claims: Record<string, unknown>) => (server: TestServer) => {
  server.idp.settings.idTokenClaims = right => ({ ...right, ...claims })
  return statusOfLogin(server)
}

const loginWhen = (fault: Fault) => (server: TestServer) => {
  server.idp.fail('token', fault)
  return statusOfLogin(server)
}

/** Returns the status of a login when the given members replace those of the discovery document. */
const discovering =
  (change: Record<string, unknown>) =>
  async ({ browser, idp }: TestServer) => {
    idp.discovery = document => ({ ...document, ...change })
    return (await browser.navigate('/api/auth/login')).statusCode
  }

/** Returns the status of the profile request after a login. */
const profileWith =
  (profile: Record<string, unknown>) =>
  async ({ browser, idp }: TestServer) => {
    await signIn(browser)
    idp.settings.profile = profile
    return (await browser.fetch('/api/auth/profile')).statusCode
  }

/** Returns the status of the profile request after a refresh whose ID token has the given claims instead of the correct ones. */
const refreshWith = (claims: Record<string, unknown>) => async (server: TestServer) => {
  server.idp.settings.quirks = { idTokenOnRefresh: true }
  await signIn(server.browser)
  server.idp.settings.idTokenClaims = right => ({ ...right, ...claims })
  return (await afterAnHour(server)).statusCode
}

const unsigned = (token: unknown) => `${btoa('{"alg":"none"}')}.${String(token).split('.')[1]}.`

const plan: readonly (readonly [name: string, run: (server: TestServer) => Promise<number>, status: number])[] = [
  ['oidcc-client-test', loginWith({}), 302],
  ['oidcc-client-test-nonce-invalid', loginWith({ nonce: 'another' }), 502],
  ['oidcc-client-test-nonce-invalid (left out)', loginWith({ nonce: undefined }), 502],
  ['oidcc-client-test-scope-userinfo-claims', profileWith({ sub: 'user-1', name: 'Ada' }), 200],
  ['oidcc-client-test-missing-iat', loginWith({ iat: undefined }), 502],
  ['oidcc-client-test-missing-aud', loginWith({ aud: undefined }), 502],
  ['oidcc-client-test-missing-sub', loginWith({ sub: undefined }), 502],
  ['oidcc-client-test-invalid-aud', loginWith({ aud: 'another-client' }), 502],
  ['oidcc-client-test-invalid-iss', loginWith({ iss: 'https://another.example' }), 502],
  ['oidcc-client-test-expired', loginWith({ exp: 1_000_000_000 }), 502],
  ['oidcc-client-test-idtoken-missing', loginWhen(faults.change({ id_token: undefined })), 502],
  ['oidcc-client-test-userinfo-invalid-sub', profileWith({ sub: 'user-2', name: 'Eve' }), 502],
  ['oidcc-client-test-userinfo-invalid-sub (left out)', profileWith({ name: 'Eve' }), 502],
  ['oidcc-client-test-discovery-openid-config', discovering({}), 302],
  ['oidcc-client-test-discovery-issuer-mismatch', discovering({ issuer: 'https://another.example' }), 502],
  // The plans allow a client of the code flow to rely on TLS instead of signatures (OpenID Connect Core section 3.1.3.7 rule
  // 6), as ours does. Signing keys may therefore be absent, unknown or rotated.
  ['oidcc-client-test-kid-absent-single-jwks', discovering({ jwks_uri: 'https://nowhere.example/jwks' }), 302],
  ['oidcc-client-test-signing-key-rotation', discovering({ jwks_uri: undefined }), 302],
  [
    'oidcc-client-test-idtoken-sig-none',
    loginWhen(faults.change(body => ({ ...body, id_token: unsigned(body.id_token) }))),
    302
  ],
  ['a refresh with an ID token', refreshWith({}), 200],
  ['a refresh with an ID token for another client', refreshWith({ aud: 'another-client' }), 200]
]

for (const mode of modes) {
  for (const [name, run, status] of plan) {
    test(`${mode}: in the conformance test "${name}" the response is ${status}`, async t => {
      t.is(await run(await start(t, mode)), status)
    })
  }

  test(`${mode}: in the conformance test "oidcc-client-test-client-secret-basic" any character in the client secret works`, async t => {
    const server = await start(t, mode, { clientSecret: 'a secret+with%20all:of/these=&~ü' })
    t.is((await refreshed(server)).statusCode, 200)
  })

  for (const [what, foreign, steps, members] of [
    ['subject', { sub: 'user-2' }, [1, 2], {}],
    ['issuer', { iss: 'https://another.example' }, [1, 2], {}],
    ['subject, but no refresh token', { sub: 'user-2' }, [1], { refresh_token: undefined }]
  ] as const) {
    for (const step of mode === 'dual' ? steps : [1]) {
      test(`${mode}: if token request ${step} of a refresh returns an ID token of another ${what}, the session ends, and its newest refresh token is revoked`, async t => {
        const server = await start(t, mode, { quirks: { idTokenOnRefresh: true } })
        const { browser, idp, clock, logs } = server
        await signIn(browser)
        const used = idp.issued.refreshTokens.at(-1)?.value
        const copy = browser.clone()
        let requests = 0
        idp.settings.idTokenClaims = right => (++requests === step ? { ...right, ...foreign } : right)
        if ('refresh_token' in members) idp.fail('token', faults.change(members))
        const response = await afterAnHour(server)
        t.deepEqual([response.statusCode, response.text()], [401, ''])
        t.deepEqual(sessionCookies(browser), [])
        await eventually(() => idp.revoked.length > 0)
        t.deepEqual(idp.revoked, ['refresh_token' in members ? used : idp.issued.refreshTokens.at(-1)?.value])
        const failure = logs.first('refresh_failed')
        t.like(failure, { outcome: 'rejected', reason: 'identity_mismatch', provider_calls: step })
        t.is(failure?.level, 'error')
        t.regex(JSON.stringify(failure), /its (sub|iss) differs from that of the login/)
        t.notRegex(JSON.stringify(failure), /user-2|another\.example/)

        // Other copies of the cookie belong to the same session, so the provider is not asked for them again.
        idp.settings.quirks = {}
        const asked = idp.tokenRequests.length
        for (const seconds of [0, 5, 3600]) {
          clock.advanceSeconds(seconds)
          t.is((await copy.clone().fetch('/api/auth/profile')).statusCode, 401)
        }
        t.is(idp.tokenRequests.length, asked)
      })
    }
  }

  test(`${mode}: RP-initiated logout sends the ID token hint to the provider, and only then the cookie contains the ID token`, async t => {
    const lengthOf = (server: TestServer) => sessionHeader(server.browser).length
    const without = await start(t, mode)
    await signIn(without.browser)
    const server = await start(t, mode, { logout: { revoke: false, idp: true } })
    const { browser, idp } = server
    await signIn(browser)
    t.true(lengthOf(server) > lengthOf(without) + 200, `${lengthOf(server)} ${lengthOf(without)}`)
    const { headers } = await browser.navigate('/api/auth/logout')
    const atProvider = await browser.navigate(String(headers.location))
    t.is(atProvider.headers.location, 'http://localhost:8080/')
    t.deepEqual(idp.requestsTo('endSession')[0]?.query, {
      post_logout_redirect_uri: 'http://localhost:8080/',
      client_id: idp.clientId,
      id_token_hint: idp.issued.idTokens.at(-1)
    })
  })

  test(`${mode}: without a user info endpoint the display name comes from the ID token, also after a refresh`, async t => {
    const server = await start(t, mode)
    const { browser, idp } = server
    idp.discovery = document => ({ ...document, userinfo_endpoint: undefined })
    idp.settings.idTokenClaims = claims => ({ ...claims, preferred_username: 'ada' })
    const response = await refreshed(server)
    t.deepEqual([response.statusCode, response.json()], [200, { name: 'ada' }])
    t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'ada' })
    t.is(idp.requestsTo('userinfo').length, 0)
  })

  test(`${mode}: without user info and ID token the display name is empty`, async t => {
    const { browser } = await start(t, mode, {
      platform: { userinfoEndpoint: 'none', scopes: ['data:read'], internalTokenScopes: ['data:read'] }
    })
    await signIn(browser)
    const response = await browser.fetch('/api/auth/profile')
    t.deepEqual([response.statusCode, response.json()], [200, { name: '' }])
  })
}

const keeping: Readonly<Record<string, Setup['quirks'] & object>> = {
  'keeps the internal token': {},
  'ends it (Doorkeeper)': { endsAccessTokens: true }
}

for (const [what, quirks] of Object.entries(keeping)) {
  test(`dual: the first login of a process tests if the provider ${what}, and a warning is logged once`, async t => {
    const { newBrowser, idp, logs } = await start(t, 'dual', { quirks })
    const asked = () => idp.requestsTo('userinfo').length
    await signIn(newBrowser())
    await eventually(() => asked() === 2)
    for (let login = 0; login < 2; login++) await signIn(newBrowser())
    t.is(asked(), 2)
    const ends = quirks.endsAccessTokens === true
    await eventually(() => logs.all('internal_token_ended').length === (ends ? 1 : 0))
    t.is(logs.first('internal_token_ended')?.level, ends ? 'warn' : undefined)
  })
}

test('dual: a provider whose user info refuses the internal token anyway, or is down, is not suspected of ending it', async t => {
  const { newBrowser, idp, logs } = await start(t, 'dual')
  idp.fail('userinfo', faults.status(500), faults.status(500), faults.error('invalid_token', 401))
  for (let login = 0; login < 3; login++) await signIn(newBrowser())
  t.is(idp.requestsTo('userinfo').length, 3)
  t.is(logs.first('internal_token_ended'), undefined)
})

test('if the provider refuses a refresh in a way that proves nothing, the page has a sign-in link after 30 seconds', async t => {
  const { browser, clock, idp } = await start(t, 'single')
  await signIn(browser)
  clock.advanceSeconds(4000)
  idp.failWhen('token', () => faults.error('unauthorized_client', 403))
  const page = () => browser.navigate('/api/auth/profile')
  const link = /session may have ended.*href="\/api\/auth\/login[^"]*">Sign in again/s
  for (const [seconds, hasLink] of [
    [0, false],
    [29, false],
    [1, true],
    [1, true],
    [3600, true]
  ] as const) {
    clock.advanceSeconds(seconds)
    const { statusCode, text } = await page()
    t.is(statusCode, 503)
    t.is(link.test(text()), hasLink, `after ${seconds} seconds more`)
  }
})

test('with logout: idp and no end-session endpoint the browser is redirected to the start page, and the log contains the reason', async t => {
  const { browser, idp, logs } = await start(t, 'single', { logout: { revoke: false, idp: true } })
  idp.discovery = document => ({ ...document, end_session_endpoint: undefined })
  await signIn(browser)
  t.is((await browser.navigate('/api/auth/logout')).headers.location, '/')
  t.regex(String(logs.first('end_session_unavailable')?.msg), /no end-session endpoint/)
})
