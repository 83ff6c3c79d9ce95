// If the session cookie of a successful login does not come back, each page sends the browser to a new login, without an end.
// The server notices this and shows a page with the likely reasons instead.
import test, { type ExecutionContext } from 'ava'
import { pageScript } from '#src/pages/index.js'
import type { BrowserResponse } from '../helpers/browser.js'
import { defaultCallbackUrl } from '../helpers/config.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../helpers/server.js'
import {
  authorize,
  followToCallback,
  guarded,
  httpsCallbackUrl,
  loginCookieName,
  sessionCookies,
  startSignedIn
} from './support.js'

/** Deletes the session cookie but no other cookie, as if the session cookie were too large for a proxy or blocked by its name. */
function dropSession({ browser }: Pick<TestServer, 'browser'>): void {
  for (const [name] of sessionCookies(browser)) browser.cookies.delete(name)
}

async function startForgetful(t: ExecutionContext) {
  const server = await startSignedIn(t)
  dropSession(server)
  return server
}

/** Short names of the reasons that the page lists, in the order of the page. */
function reasonsOn(page: BrowserResponse): string[] {
  const words = {
    'over plain http': 'http',
    'host name other than': 'host',
    'blocks cookies': 'blocked',
    'is larger than the cookies': 'size'
  }
  return Object.entries(words)
    .map(([text, reason]) => ({ reason, at: page.text().replaceAll(/\s+/g, ' ').indexOf(text) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)
    .map(({ reason }) => reason)
}

test('if the session cookie is lost after a login, the next one shows a page that explains it and loads nothing, and the one after it can succeed', async t => {
  const { browser, idp, logs } = await startForgetful(t)
  t.is((await browser.fetch(guarded)).statusCode, 401)
  t.is((await browser.clone().get('/api/auth/login')).json().error, 'session_cookie_missing')
  const page = await browser.navigate('/api/auth/login')
  t.is(page.statusCode, 400)
  t.is(page.headers.location, undefined)
  t.is(idp.requestsTo('authorize').length, 1)
  t.regex(page.headers['content-type'] ?? '', /^text\/html/)
  t.deepEqual(reasonsOn(page), ['size', 'blocked'])
  t.regex(page.text(), /href="http:\/\/localhost:8080\/api\/auth\/login"/)
  t.regex(page.text(), /href="http:\/\/localhost:8080\/"/)
  t.regex(page.text(), new RegExp(`<code>${page.headers['x-request-id']}</code>`))
  const markup = page.text().replace(`<script type="module">${pageScript}</script>`, '')
  t.notRegex(markup, /src=|<script|@import|url\(/)
  t.regex(page.headers['content-security-policy']?.toString() ?? '', /default-src 'none'.*frame-ancestors 'self'/)
  t.is(page.headers['cache-control'], 'no-store')
  t.is(logs.all('session_cookie_missing').length, 2)
  t.is((await browser.navigate('/api/auth/login')).statusCode, 302)
  t.is((await signIn(browser)).statusCode, 302)
  t.is((await browser.fetch(guarded)).statusCode, 200)
  t.is(logs.all('session_cookie_missing').length, 2)
})

test('if the request has another host name, the page shows the URL at which to open the application', async t => {
  const { browser } = await startForgetful(t)
  const page = await browser.navigate('/api/auth/login', { headers: { host: 'internal.example:8080' } })
  t.is(reasonsOn(page)[0], 'host')
  t.regex(page.text(), /href="http:\/\/localhost:8080\/"/)
  t.false(
    page.text().includes('internal.example'),
    'the page does not repeat the Host header, because a proxy may have set it to an internal name'
  )
})

const twoNames = /You opened <code>127\.0\.0\.1:8080<\/code>, but\s+sign-in returns to <code>localhost:8080<\/code>/

test('a browser at 127.0.0.1 is told that sign-in returns to localhost', async t => {
  const { browser } = await startForgetful(t)
  const page = await browser.navigate('/api/auth/login', { headers: { host: '127.0.0.1:8080' } })
  t.regex(page.text(), twoNames)
  t.deepEqual(reasonsOn(page), [], 'the page lists no other reason')
})

test('a login that began at 127.0.0.1 is started again at localhost, where the user is then signed in', async t => {
  const { browser, newBrowser } = await startTestServer(t)
  // Cookies belong to one host name, so the browser has a second cookie jar for 127.0.0.1.
  const sameBrowserElsewhere = newBrowser()
  const back = await authorize(sameBrowserElsewhere, '/api/auth/login?return_to=/a-page', {
    headers: { host: '127.0.0.1:8080' }
  })
  const again = await followToCallback(browser, await openCallback(browser, back))
  t.is((await openCallback(browser, again)).headers.location, '/a-page')
  t.is((await browser.fetch(guarded)).statusCode, 200)
})

for (const [callbackUrl, base, reasons] of [
  [defaultCallbackUrl, '', ['host', 'blocked']],
  [httpsCallbackUrl, '/tools/viewer', ['http', 'host', 'blocked']]
] as const) {
  test(`if the login cookie does not come back twice, the page has the likely reasons, and no code is exchanged: ${callbackUrl}`, async t => {
    const { browser, idp } = await startTestServer(t, { settings: { platform: { callbackUrl } } })
    const back = await authorize(browser, `${base}/api/auth/login`)
    browser.cookies.clear()
    const again = await followToCallback(browser, await openCallback(browser, back))
    browser.cookies.clear()
    const page = await openCallback(browser, again)
    t.deepEqual([page.statusCode, page.setCookies, reasonsOn(page)], [400, [], [...reasons]])
    const { origin } = new URL(callbackUrl)
    for (const path of ['/', '/api/auth/login']) t.true(page.text().includes(`href="${origin}${base}${path}"`), path)
    t.is((await browser.get(again)).json().error, 'login_cookie_missing')
    t.deepEqual(idp.tokenRequests, [])
  })
}

/** What happens between the login and the next one. */
const noLoop: Readonly<Record<string, (server: TestServer) => unknown>> = {
  'the session cookie is present': () => {},
  'the session cookie is present but cannot be read': ({ browser }) =>
    browser.cookies.set('platform_session', 'sealed by another secret'),
  'the user has logged out': ({ browser }) => browser.navigate('/api/auth/logout'),
  'the session cookie is lost more than a minute later': server => {
    dropSession(server)
    server.clock.advanceSeconds(60)
  },
  'all cookies were deleted': ({ browser }) => browser.cookies.clear(),
  'the login cookie has a time of success in the future': server => {
    dropSession(server)
    server.browser.cookies.set(loginCookieName, `${'a'.repeat(43)}.${server.clock.now() + 1000}`)
  },
  'the provider has ended the session within seconds': async ({ browser, clock, idp }) => {
    idp.endAllGrants()
    clock.advanceSeconds(6)
    await browser.fetch(guarded)
    if (sessionCookies(browser).length > 0) throw new Error('The session has not ended.')
  },
  'a second tab has finished its login shortly after the first tab': async ({ browser }) => {
    const second = await startLogin(browser, '/second')
    await signIn(browser)
    await openCallback(browser, second)
  }
}

for (const [what, happen] of Object.entries(noLoop)) {
  test(`a second login is not treated as a login loop if ${what}`, async t => {
    const server = await startTestServer(t)
    server.idp.settings.accessTokenLifetimeSeconds = 5
    await signIn(server.browser)
    await happen(server)
    t.is((await server.browser.navigate('/api/auth/login')).statusCode, 302)
    t.is(server.logs.first('session_cookie_missing'), undefined)
  })
}

test('a second login is not treated as a login loop if the maximum age of the session has ended within a minute', async t => {
  const { browser, clock } = await startSignedIn(t, { settings: { session: { inactivityTimeout: 30 } } })
  clock.advanceSeconds(31)
  t.deepEqual(sessionCookies(browser), [])
  t.is((await browser.navigate('/api/auth/login')).statusCode, 302)
})
