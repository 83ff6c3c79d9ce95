import test, { type ExecutionContext } from 'ava'
import { systemClock } from '#src/base/clock.js'
import type { Extension } from '#src/web/routes/extension.js'
import type { Browser } from '../../helpers/browser.js'
import { createClock } from '../../helpers/clock.js'
import { defaultCallbackUrl, discovered, publicOrigin, type TestSettings } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { createHostileIdp, faults, type HostileIdp } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { startRedis, testWithRedis } from '../../helpers/redis.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../../helpers/server.js'
import { words } from '../../helpers/words.js'
import { guarded, statusesOf } from '../support.js'

const PATH = '/api/auth/backchannel-logout'
const scopes = ['openid', 'data:read']

function settingsOf(idp: Pick<HostileIdp, 'issuer'>): TestSettings {
  const platform = { ...discovered(idp), scopes, internalTokenScopes: scopes, publicTokenScopes: ['data:read'] }
  return { platform: { ...platform, backchannelLogout: true } }
}

async function start(t: ExecutionContext, mode: 'single' | 'dual' = 'single', more: Partial<TestServerOptions> = {}) {
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
  const settings = { ...settingsOf(idp), ...more.settings }
  // The time between two requests for keys passes only when the test moves the clock, also on a slow machine.
  const parts = { ...more.parts, clock: { ...systemClock, now: clock.now, monotonic: clock.monotonic } }
  return startTestServer(t, { mode, idp, clock, settings, parts })
}

const withSid = (sid: string) => (claims: Record<string, unknown>) => ({ ...claims, sid })

/** Signs in with a new browser, in a login session of the provider with this `sid`. */
async function signInAs({ idp, newBrowser }: TestServer, sub: string, sid: string): Promise<Browser> {
  idp.settings.profile = { ...idp.settings.profile, sub }
  idp.settings.idTokenClaims = withSid(sid)
  const browser = newBrowser()
  await signIn(browser)
  return browser
}

/** The provider is no browser, so its request has none of the headers of a browser. */
function send({ browser }: Pick<TestServer, 'browser'>, logoutToken: string) {
  return browser.request('POST', PATH, { form: { logout_token: logoutToken } })
}

/** The profile of another user than that of the provider gets an error, but only 401 means that nobody is signed in. */
async function areSignedIn(...browsers: readonly Browser[]): Promise<readonly boolean[]> {
  return Promise.all(browsers.map(async browser => (await browser.fetch(guarded)).statusCode !== 401))
}

test('a logout token also ends a session that changes of ctx.session have kept alive longer than its lists without a refresh', async t => {
  const extension: Extension = (app, { requireTokens }) => {
    app.use(async (ctx, next) => {
      if (ctx.path !== '/visits') return next()
      return requireTokens(ctx, async () => {
        const session = ctx.session as { visits?: number }
        session.visits = (session.visits ?? 0) + 1
        ctx.body = String(session.visits)
      })
    })
  }
  const settings = { session: { inactivityTimeout: 900 } }
  const server = await start(t, 'single', { settings, parts: { extension } })
  const browser = await signInAs(server, 'ada-lovelace', 'login-1')
  for (let visit = 1; visit <= 4; visit++) {
    server.clock.advanceSeconds(600)
    t.is((await browser.fetch('/visits')).text(), String(visit))
  }
  t.is(server.idp.tokenRequests.length, 1)
  t.is((await send(server, server.idp.logoutToken({ sub: 'ada-lovelace' }))).statusCode, 200)
  t.deepEqual(await areSignedIn(browser), [false])
})

for (const mode of modes) {
  test(`${mode}: a logout token with a sid ends the sessions of this login, and one with a sub all sessions of the user`, async t => {
    const server = await start(t, mode)
    const { idp, logs } = server
    const laptop = await signInAs(server, 'ada-lovelace', 'login-1')
    const phone = await signInAs(server, 'ada-lovelace', 'login-2')
    const other = await signInAs(server, 'grace', 'login-3')
    const response = await send(server, idp.logoutToken({ sid: 'login-1', sub: 'ada-lovelace' }))
    t.deepEqual([response.statusCode, response.body.length], [200, 0])
    t.is(response.headers['cache-control'], 'no-store')
    t.deepEqual(await areSignedIn(laptop, phone, other), [false, true, true])
    t.is((await send(server, idp.logoutToken({ sub: 'ada-lovelace' }))).statusCode, 200)
    t.deepEqual(await areSignedIn(laptop, phone, other), [false, false, true])
    const done = logs.all('backchannel_logout_succeeded').map(({ sessions, by }) => `${sessions} by ${by}`)
    t.deepEqual(done, ['1 by sid', '1 by sub'])
    t.is((await send(server, idp.logoutToken({ sub: 'nobody' }))).statusCode, 200)
    await eventually(() => idp.revoked.length === 2)
    // A shorter name could be part of the random id of a request.
    t.false(JSON.stringify(logs.entries).includes('ada-lovelace'))
  })
}

test('a login that is in progress when its logout token arrives gives no session', async t => {
  const server = await start(t)
  const { idp, browser } = server
  idp.settings.idTokenClaims = withSid('login-1')
  const back = await startLogin(browser)
  const hold = idp.hold('token', 'after')
  const callback = openCallback(browser, back)
  await hold.arrived()
  t.is((await send(server, idp.logoutToken({ sid: 'login-1' }))).statusCode, 200)
  hold.release()
  t.is((await callback).statusCode, 400)
  t.is((await browser.fetch(guarded)).statusCode, 401)
  await eventually(() => idp.revoked.length === 1)
})

test('a repeated or unusable logout token gets 400 with no-store, and is logged in one line without the token', async t => {
  const server = await start(t)
  const { idp, logs, browser } = server
  await signIn(browser)
  const once = idp.logoutToken({ sub: 'ada' })
  const answers = await Promise.all(Array.from({ length: 5 }, () => send(server, once)))
  t.deepEqual(statusesOf(answers).sort(), [200, 400, 400, 400, 400])
  const token = idp.logoutToken({ sub: 'user-1', iss: 'https://other.example' })
  const response = await send(server, token)
  t.is(response.statusCode, 400)
  t.is(response.headers['cache-control'], 'no-store')
  t.is(response.json<{ error: string }>().error, 'invalid_request')
  const reasons = logs.all('backchannel_logout_rejected').map(({ reason }) => reason)
  t.deepEqual(reasons, ['jti', 'jti', 'jti', 'jti', 'iss'])
  const output = JSON.stringify(logs.entries)
  for (const part of token.split('.')) t.false(output.includes(part))
  t.deepEqual(await areSignedIn(browser), [true])
})

const asForm = { 'content-type': 'application/x-www-form-urlencoded' }
const unusable: readonly (readonly [what: string, headers: Record<string, string>, body: string])[] = [
  ['no body', {}, ''],
  ['another type', { 'content-type': 'application/json' }, '{"logout_token":"a.b.c"}'],
  ['no type', {}, 'logout_token=a.b.c'],
  ['no token', asForm, 'token=a.b.c'],
  ['two tokens', asForm, 'logout_token=a.b.c&logout_token=a.b.c'],
  ['an array', asForm, 'logout_token[]=a.b.c'],
  ['a broken escape', asForm, 'logout_token=%zz%ff%00'],
  ['a long body', asForm, `logout_token=${'a'.repeat(16_384)}`]
]
for (const [what, headers, body] of unusable) {
  test(`a request to the logout route with ${what} gets 400`, async t => {
    const server = await start(t)
    const response = await server.browser.request('POST', PATH, { headers, body })
    t.is(response.statusCode, 400)
    t.is(response.headers['cache-control'], 'no-store')
    t.is(server.idp.requestsTo('jwks').length, 0)
  })
}

// test/provider/logout-token.test.ts has the rules for keys.
test('a logout token with a new key of the provider gets 503 until the keys can be requested again, and 502 if the provider fails', async t => {
  const server = await start(t)
  const { idp, clock, logs } = server
  t.is((await send(server, idp.logoutToken({ sub: 'grace' }))).statusCode, 200)
  idp.rotateKeys()
  clock.advanceSeconds(10)
  const newer = idp.logoutToken({ sub: 'ada' })
  const early = await send(server, newer)
  t.deepEqual([early.statusCode, early.headers['retry-after']], [503, '20'])
  t.is(logs.first('request_failed')?.level, 'warn')
  clock.advanceSeconds(20)
  idp.fail('jwks', faults.status(500), faults.status(500))
  t.is((await send(server, newer)).statusCode, 502)
  clock.advanceSeconds(30)
  t.is((await send(server, newer)).statusCode, 200, 'the same token can be sent again')
})

test('the logout route accepts POST only, and without the setting nothing, and everywhere=true is rejected, because other sessions are unknown', async t => {
  const server = await start(t)
  for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) {
    const response = await server.browser.request(method, PATH)
    t.is(response.statusCode, 405, method)
    t.is(response.headers.allow, 'POST')
  }
  const without = await startTestServer(t)
  t.is((await send(without, without.idp.logoutToken({ sub: 'user-1' }))).statusCode, 404)
  t.is((await without.browser.get(PATH)).statusCode, 404)
  const { browser } = without
  await signIn(browser)
  const response = await browser.navigate('/api/auth/logout?everywhere=true')
  t.is(response.statusCode, 400)
  t.regex(response.text(), /platform\.backchannelLogout/)
  t.deepEqual(await areSignedIn(browser), [true])
})

testWithRedis('with session.store redis, a logout token and everywhere=true end the sessions in Redis', async t => {
  const redis = await startRedis(t)
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
  const settings = { ...settingsOf(idp), session: { store: 'redis' }, redis: { url: redis.url } } as const
  const server = await startTestServer(t, { idp, clock, settings })
  const ada = [await signInAs(server, 'ada', 'login-1'), await signInAs(server, 'ada', 'login-2')] as const
  const grace = [await signInAs(server, 'grace', 'login-3'), await signInAs(server, 'grace', 'login-4')] as const
  t.is((await send(server, idp.logoutToken({ sub: 'ada' }))).statusCode, 200)
  t.deepEqual(await areSignedIn(...ada, ...grace), [false, false, true, true])
  t.is((await grace[0].navigate('/api/auth/logout?everywhere=true')).statusCode, 302)
  t.deepEqual(await areSignedIn(...grace), [false, false])
  t.deepEqual(await redis.admin.keys('*:record'), [])
  // The server needs no cookie for the sessions of the last minute, because it remembers them.
  await eventually(() => idp.issued.refreshTokens.every(({ value }) => !idp.isAlive(value)))
})

test('with everywhere=true, a logout ends all sessions of the user', async t => {
  const server = await start(t)
  const { idp, logs } = server
  const [laptop, phone] = [await signInAs(server, 'ada', 'login-1'), await signInAs(server, 'ada', 'login-2')]
  const other = await signInAs(server, 'grace', 'login-3')
  const stolen = phone.clone()
  const response = await laptop.navigate('/api/auth/logout?everywhere=true')
  t.is(response.statusCode, 302)
  t.deepEqual(laptop.cookies.all(), [])
  t.deepEqual(await areSignedIn(laptop, phone, stolen, other), [false, false, false, true])
  t.like(logs.first('logout_everywhere_succeeded'), { sessions: 2 })
  await eventually(() => idp.revoked.length >= 2)
  const again = await signInAs(server, 'ada', 'login-4')
  t.is((await stolen.navigate('/api/auth/logout?everywhere=true')).statusCode, 302)
  t.deepEqual(await areSignedIn(again), [true], 'a session that was logged out cannot end the others')
})

test('only a page of this site can cause a logout everywhere, and other values of everywhere are rejected', async t => {
  const server = await start(t)
  const [browser, phone] = [await signInAs(server, 'ada', 'login-1'), await signInAs(server, 'ada', 'login-2')]
  const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors' }
  const path = '/api/auth/logout?everywhere=true'
  const link = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
  // Further headers are listed in test/web/every-request/request-origin.test.ts.
  for (const headers of [
    ...[{}, image, { origin: 'https://evil.example' }, { referer: 'https://evil.example/' }, { referer: 'not a URL' }],
    ...['cross-site', 'same-site'].map(site => ({ ...link, 'sec-fetch-site': site }))
  ]) {
    const { statusCode, setCookies } = await browser.get(path, { headers })
    t.deepEqual([statusCode, setCookies], [403, []], JSON.stringify(headers))
  }
  for (const query of words`everywhere=false everywhere= everywhere=true&everywhere=true everywhere=TRUE`)
    t.is((await browser.get(`/api/auth/logout?${query}`)).statusCode, 400, query)
  t.deepEqual(await areSignedIn(browser, phone), [true, true])
  t.is((await browser.get(path, { headers: { referer: `${publicOrigin}/devices` } })).statusCode, 302)
  t.deepEqual(await areSignedIn(browser, phone), [false, false])
})
