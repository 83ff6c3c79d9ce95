import test, { type ExecutionContext } from 'ava'
import type { Browser } from '../../helpers/browser.js'
import { publicOrigin } from '../../helpers/config.js'
import { modes } from '../../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../../helpers/server.js'
import { words } from '../../helpers/words.js'
import {
  afterAnHour,
  guarded,
  openedSession,
  sessionCookies,
  sessionCookiesSet,
  sessionHeader,
  startSignedIn
} from '../support.js'

const name = 'platform_session'

/** Starts a server and a browser that is logged in with two access tokens of 4,500 characters, so that the session has 9 kB. */
async function startLarge(t: ExecutionContext) {
  const server = await startTestServer(t, { mode: 'dual' })
  server.idp.settings.accessTokenLength = 4500
  await signIn(server.browser)
  return server
}

/** Requests a guarded route with the given Cookie header. */
async function ask({ newBrowser }: Pick<TestServer, 'newBrowser'>, cookie: string) {
  return newBrowser().get(guarded, { headers: { cookie } })
}

type Cookies = readonly (readonly [name: string, value: string])[]

test('a sealed session contains only the fields of the contract and our own five, and its id does not change at a refresh', async t => {
  const server = await startSignedIn(t)
  const { browser } = server
  const { _id, ...others } = openedSession(browser, server)
  t.deepEqual(Object.keys(others).sort(), words`_expire _issued _login _rev expires_at refresh_token token`)
  t.regex(_id, /^[A-Za-z0-9_-]{22}$/)
  for (const _round of [1, 2]) {
    await afterAnHour(server)
    t.is(openedSession(browser, server)._id, _id)
  }
  await signIn(browser)
  t.not(openedSession(browser, server)._id, _id)
})

const hourMs = 3_600_000

for (const mode of modes) {
  test(`after a refresh, a request with the old cookie gets a session with the absolute maximum age of its login (${mode})`, async t => {
    const settings = { session: { maxLifetime: 7200 } }
    const server = await startSignedIn(t, { mode, settings })
    const { browser, clock, idp } = server
    const late = browser.clone()
    clock.advance(hourMs + 1000)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    const calls = idp.tokenRequests.length
    clock.advance(hourMs / 2)
    const kept = await late.fetch(guarded)
    t.is(kept.statusCode, 200)
    t.is(sessionCookiesSet(kept)[0]?.attributes['max-age'], '1799')
    t.is(openedSession(late, server)._login, openedSession(browser, server)._login)
    clock.advance(hourMs / 2)
    for (const one of [browser, late]) t.is((await one.fetch(guarded)).statusCode, 401)
    t.is(idp.tokenRequests.length, calls)

    await signIn(browser)
    clock.advance(hourMs)
    await signIn(browser)
    t.is(openedSession(browser, server)._login, clock.now(), 'a new login starts a new absolute maximum age')
    clock.advance(2 * hourMs - 1000)
    t.is((await browser.fetch(guarded)).statusCode, 200)
  })
}

const [oldSecret, newSecret] = ['pX3nV7qLz9TbRm2YwK5sGd8HcJ4fAe6U', 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU']

/** Starts three servers of a deployment, with the old secret, with both secrets and with the new secret. */
async function startRotation(t: ExecutionContext) {
  const before = await startTestServer(t, { settings: { session: { secret: oldSecret } } })
  const { idp, clock, browser } = before
  const both = { secret: newSecret, previousSecrets: [oldSecret] }
  const during = await startTestServer(t, { idp, clock, settings: { session: both } })
  const after = await startTestServer(t, { idp, clock, settings: { session: { secret: newSecret } } })
  return { before, during, after, clock, idp, browser }
}

test('a login that began before the secret was replaced can be finished while the old secret is configured', async t => {
  const { during, after, browser, idp } = await startRotation(t)
  const back = await startLogin(browser)
  after.connect(browser)
  t.is((await openCallback(browser, back)).statusCode, 400, 'without the old secret the login cannot be finished')
  t.is(idp.tokenRequests.length, 0)
  during.connect(browser)
  t.is((await openCallback(browser, back)).statusCode, 302)
  t.is((await ask(after, sessionHeader(browser))).statusCode, 200, 'the session is sealed with the new secret')
})

test('when a session becomes smaller its additional cookies are deleted, and when it becomes larger cookies are added', async t => {
  const server = await startLarge(t)
  const { browser, idp } = server
  for (const [length, chunks] of [
    [500, 1],
    [2500, 2],
    [4500, 3],
    [500, 1]
  ] as const) {
    idp.settings.accessTokenLength = length
    const refreshed = await afterAnHour(server)
    t.is(refreshed.statusCode, 200)
    t.is(sessionCookies(browser).length, chunks)
    t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
    if (length > 500) continue
    const set = sessionCookiesSet(refreshed).map(({ name, value, attributes }) => [name, value, attributes['max-age']])
    t.deepEqual(
      set.slice(1),
      [`${name}.1`, `${name}.2`].map(deleted => [deleted, '', '0'])
    )
  }
})

/** Sets cookies as another server on this host or a server with an older secret could have set them. */
function plant(browser: Browser, cookies: Cookies): void {
  for (const [each, value] of cookies) browser.cookies.set(each, value, new URL(publicOrigin))
}

test('a session cookie that cannot be read stays until a login replaces it or a logout deletes it', async t => {
  const { browser } = await startTestServer(t)
  const unreadable: Cookies = [
    [name, '3unreadable'],
    [`${name}.1`, 'x'],
    [`${name}.3`, 'left over']
  ]
  plant(browser, unreadable)
  t.is((await browser.fetch(guarded)).statusCode, 401)
  await browser.navigate('/api/auth/login')
  t.deepEqual(sessionCookies(browser), unreadable)
  await signIn(browser)
  t.is(sessionCookies(browser).length, 1)
  t.is((await browser.fetch(guarded)).statusCode, 200)

  plant(browser, unreadable)
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  t.deepEqual(sessionCookies(browser), [])
})
