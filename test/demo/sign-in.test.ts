import { once } from 'node:events'
import net from 'node:net'
import test from 'ava'
import { offeredUsers } from '#src/demo/index.js'
import { createBrowser } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { denyAtDemo, signInAtDemo } from '../helpers/sign-in.js'
import { authorizationUrl, callbackUrl, start, userInfoOf } from './setup.js'

const follow = { follow: true } as const

function parametersOf(url: string): Record<string, string> {
  return Object.fromEntries(new URL(url).searchParams)
}

test('the sign-in page works without JavaScript, loads nothing from other hosts, and signs each suggested user in with one click', async t => {
  const demo = await start(t)
  const page = await createBrowser(t).navigate(authorizationUrl(demo), follow)
  t.is(page.statusCode, 200)
  t.is(page.url.origin, demo.issuer)
  const policy = String(page.headers['content-security-policy'])
  t.regex(policy, /^default-src 'none'; style-src 'sha256-/)
  t.true(policy.includes("form-action 'self' http://localhost:8080;"), policy)
  t.true(policy.includes("frame-ancestors 'none'"), policy)
  t.like(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff'
  })
  t.notRegex(page.text(), /<script|https?:\/\/(?!www\.w3\.org)|style="|onclick/)
  t.regex(page.text(), /<label for="user">/)
  t.true(page.text().includes('<code>data:read viewables:read</code>'), 'the page shows the requested scopes')
  const offered = [...page.text().matchAll(/<button[^>]* name="user" value="([^"]*)"/g)].map(([, name]) => name)
  t.deepEqual(offered, [...offeredUsers])
  for (const name of offeredUsers) t.like(await userInfoOf(demo, name, createBrowser(t)), { name })
})

test('a user signs in with any name, userinfo returns it, and letter case and spaces make no other user', async t => {
  const demo = await start(t)
  const names = {
    'Ada Lovelace': {
      name: 'Ada Lovelace',
      given_name: 'Ada',
      family_name: 'Lovelace',
      preferred_username: 'ada.lovelace'
    },
    ada: { name: 'ada', given_name: 'ada', family_name: undefined, preferred_username: 'ada' },
    '  Juan   Carlos\tde Borbón ': {
      name: 'Juan Carlos de Borbón',
      given_name: 'Juan',
      family_name: 'Carlos de Borbón'
    },
    王小明: { name: '王小明', given_name: '王小明' },
    '<b>"O\'Brien" & Söhne</b>': { name: '<b>"O\'Brien" & Söhne</b>', preferred_username: 'b.o.brien.sohne.b' },
    ['x'.repeat(100)]: { name: 'x'.repeat(100) }
  }
  for (const [typed, expected] of Object.entries(names))
    t.like(await userInfoOf(demo, typed, createBrowser(t)), expected, typed)
  const subjectOf = async (name: string) => (await userInfoOf(demo, name, createBrowser(t))).sub
  const subject = await subjectOf('Grace Hopper')
  t.is(await subjectOf(' grace  HOPPER'), subject)
  t.not(await subjectOf('Grace Hoppers'), subject)
})

test('the redirect to the callback contains state, iss, and a code or, after the Deny button, access_denied', async t => {
  const demo = await start(t)
  const callback = await signInAtDemo(createBrowser(t), authorizationUrl(demo, { state: 'a.b_c-D' }), 'Ada')
  t.true(callback.startsWith(`${callbackUrl}?`))
  const { code, ...others } = parametersOf(callback)
  t.regex(code ?? '', /^[\w-]{40,}$/)
  t.deepEqual(others, { state: 'a.b_c-D', iss: demo.issuer })
  const denied = parametersOf(await denyAtDemo(createBrowser(t), authorizationUrl(demo)))
  t.like(denied, { error: 'access_denied', state: 'the-state', iss: demo.issuer })
  t.false('code' in denied)
})

test('for an empty or too long name the page shows the problem, and a corrected name is accepted', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  const page = await browser.navigate(authorizationUrl(demo), follow)
  for (const [typed, why] of [
    ['', 'Type a name'],
    [' \t\u0000 ', 'Type a name'],
    [`"><i>${'x'.repeat(100)}`, 'Use 100 characters']
  ] as const) {
    const again = await browser.request('POST', page.url.href, { form: { user: typed } })
    t.is(again.statusCode, 422, why)
    t.regex(again.text(), new RegExp(`<p id="problem" role="alert">${why}`))
    t.regex(again.text(), /<input id="user"[^>]* aria-invalid="true" aria-describedby="problem">/)
    t.false(again.text().includes('<i>'))
  }
  const done = await browser.request('POST', page.url.href, { form: { user: 'Ada' } })
  t.is(done.statusCode, 303)
})

test('a browser that has signed in is not asked again for a day, except with prompt=login', async t => {
  const clock = createClock()
  const demo = await start(t, { now: clock.now })
  const browser = createBrowser(t)
  await signInAtDemo(browser, authorizationUrl(demo), 'Ada')
  clock.advanceSeconds(23 * 3600)
  const silent = await browser.navigate(authorizationUrl(demo))
  t.is(silent.statusCode, 303)
  t.true(silent.headers.location?.startsWith(`${callbackUrl}?code=`))
  const asked = await browser.navigate(authorizationUrl(demo, { prompt: 'login' }), follow)
  t.is(asked.statusCode, 200)
  t.regex(asked.text(), /<label for="user">/)
  clock.advanceSeconds(2 * 24 * 3600)
  t.true((await browser.navigate(authorizationUrl(demo))).headers.location?.startsWith('/sign-in/'))
})

test('with prompt=select_account the demo shows its sign-in page, which names the user who is signed in', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  const choose = authorizationUrl(demo, { prompt: 'select_account' })
  const first = await browser.navigate(choose, follow)
  t.notRegex(first.text(), /is signed in here/)
  await signInAtDemo(browser, choose, 'Ada Lovelace')
  const page = await browser.navigate(choose, follow)
  t.is(page.statusCode, 200)
  t.regex(page.text(), /is signed in here as <strong>Ada Lovelace<\/strong>/)
  for (const [prompt, name] of [
    ['select_account', 'Ada Lovelace'],
    ['select_account', 'Grace Hopper'],
    ['login', 'Zaha Hadid'],
    ['login select_account', 'Kenzō Tange']
  ] as const)
    t.like(await userInfoOf(demo, name, browser, { prompt }), { name }, `${prompt}: ${name}`)
})

test('a sign-in page that is finished or belongs to another browser shows an error with a link to the application', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  const page = await browser.navigate(authorizationUrl(demo), follow)
  const other = await createBrowser(t).navigate(page.url.href)
  await signInAtDemo(browser, authorizationUrl(demo), 'Ada')
  const posted = await browser.request('POST', page.url.href, { form: { deny: 'yes' } })
  await browser.navigate(String(posted.headers.location))
  const over = await browser.navigate(page.url.href)
  const resumed = await browser.navigate(String(posted.headers.location))
  for (const response of [other, over, resumed]) {
    t.is(response.statusCode, 400)
    t.regex(response.text(), /<a class="button" href="http:\/\/localhost:8080\/">/)
    t.is(response.headers.location, undefined)
  }
})

test('a wrong redirect_uri gets a page that shows the registered one, and an unknown client an error page, without a redirect', async t => {
  const demo = await start(t)
  const unknown = await createBrowser(t).navigate(authorizationUrl(demo, { client_id: '<b>' }))
  t.is(unknown.statusCode, 400)
  t.is(unknown.headers.location, undefined)
  t.true(unknown.text().includes('invalid_client'))
  t.false(unknown.text().includes('<b>'))
  for (const redirectUri of [
    'http://localhost:8080/api/auth/callback/',
    'http://localhost:8080/api/auth/callback?x=1',
    'http://localhost:8081/api/auth/callback',
    'http://127.0.0.1:8080/api/auth/callback',
    'https://evil.example/'
  ]) {
    const page = await createBrowser(t).navigate(authorizationUrl(demo, { redirect_uri: redirectUri }))
    t.is(page.statusCode, 400, redirectUri)
    t.is(page.headers.location, undefined, redirectUri)
    t.true(page.text().includes(`<code>${callbackUrl}</code>`), redirectUri)
    t.regex(String(page.headers['content-security-policy']), /^default-src 'none'/)
  }
})

test('the sign-in form accepts only small urlencoded POST requests, and still works after one was cut off', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  const { url } = await browser.navigate(authorizationUrl(demo), follow)
  t.is((await browser.request('PUT', url.href)).statusCode, 405)
  const json = { body: '{}', headers: { 'content-type': 'application/json' } }
  t.is((await browser.request('POST', url.href, json)).statusCode, 415)
  // A long body is still on its way when the demo refuses it.
  for (const length of [10_000, 2_000_000]) {
    const form = { user: 'x'.repeat(length) }
    t.is((await browser.request('POST', url.href, { form })).statusCode, 413, String(length))
  }

  const socket = net.connect(demo.port, '127.0.0.1')
  socket.write(
    `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nCookie: ${browser.cookies.header(url)}\r\n` +
      'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n'
  )
  const [goAhead] = await once(socket, 'data')
  t.regex(String(goAhead), /^HTTP\/1.1 100 /)
  socket.write('user=')
  socket.destroy()
  t.is((await browser.request('POST', url.href, { form: { user: 'Ada' } })).statusCode, 303)
})
