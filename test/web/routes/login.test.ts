import test from 'ava'
import type { Browser, BrowserResponse } from '../../helpers/browser.js'
import { assertCases } from '../../helpers/case-file.js'
import { defaultCallbackUrl, publicOrigin } from '../../helpers/config.js'
import { returnPaths } from '../../helpers/return-paths.js'
import { openCallback, signIn, startLogin, startTestServer } from '../../helpers/server.js'
import { words } from '../../helpers/words.js'
import { authorize, guarded, httpsCallbackUrl, loginCookieName, parameter, startSignedIn } from '../support.js'

test('login passes on prompt=login or select_account in place of the configured prompt, and refuses any other prompt', async t => {
  const platform = { authorizationParams: { prompt: 'consent' } }
  const { browser } = await startTestServer(t, { settings: { platform } })
  for (const [query, expected] of [
    ['', 'consent'],
    ['prompt=login&return_to=%2Fmodels', 'login'],
    ['prompt=select_account', 'select_account']
  ] as const) {
    t.is(parameter(await locationOf(browser, query), 'prompt'), expected)
  }
  t.is(await landing(browser, 'prompt=login&return_to=%2Fmodels'), '/models')
  for (const query of words`prompt=none prompt= prompt=login&prompt=login prompt=login%20select_account`) {
    const response = await browser.navigate(`/api/auth/login?${query}`)
    t.is(response.statusCode, 400, query)
    t.regex(response.text(), /prompt must be one of: login, select_account/)
  }
})

test('without PKCE neither a code challenge nor a code verifier is sent', async t => {
  const { idp } = await startSignedIn(t, { settings: { platform: { pkce: false } } })
  const sent = { ...idp.requestsTo('authorize')[0]?.query, ...idp.tokenRequests[0]?.form }
  for (const name of words`code_challenge code_challenge_method code_verifier`) t.false(name in sent, name)
})

test('further logins in a browser keep its login cookie and extend it to ten minutes again, and replace a malformed one', async t => {
  const { browser, clock } = await startTestServer(t)
  const [first] = (await browser.navigate('/api/auth/login')).setCookies
  clock.advanceSeconds(500)
  const back = await startLogin(browser)
  clock.advanceSeconds(290)
  t.is(browser.cookies.value(loginCookieName), first?.value)
  t.is((await openCallback(browser, back)).statusCode, 302)
  for (const value of ['', 'x', 'a'.repeat(42), `${'a'.repeat(43)}.x`, `${'a'.repeat(44)}`, '"quoted"']) {
    browser.cookies.set(loginCookieName, value, new URL(publicOrigin))
    const [cookie] = (await browser.navigate('/api/auth/login')).setCookies
    t.regex(cookie?.value ?? '', /^[A-Za-z0-9_.]{43}$/)
    t.is((await signIn(browser)).statusCode, 302)
  }
})

test('fifty logins of a browser, one after the other or at the same time, use one login cookie, and each of them can be finished', async t => {
  const { browser, idp } = await startTestServer(t)
  const tabs: string[] = []
  for (let tab = 0; tab < 50; tab += 1) tabs.push(await startLogin(browser, `/tab-${tab}`))
  t.deepEqual(
    browser.cookies.all().map(({ name }) => name),
    [loginCookieName]
  )
  for (const tab of new Set([49, 0, 25, ...tabs.keys()])) {
    const callback = await openCallback(browser, tabs[tab] ?? '')
    t.is(callback.headers.location, `/tab-${tab}`)
    t.true((browser.cookies.header(new URL(publicOrigin)) ?? '').length < 8192)
  }
  t.is(idp.tokenRequests.length, 50)
  t.is((await browser.fetch(guarded)).statusCode, 200)

  const together = await Promise.all(tabs.map((_, tab) => startLogin(browser, `/tab-${tab}`)))
  const callbacks = await Promise.all(together.map(tab => openCallback(browser, tab)))
  for (const [tab, { headers }] of callbacks.entries()) t.is(headers.location, `/tab-${tab}`)
})

/** Returns the URL to which the login redirects. */
async function locationOf(browser: Browser, query = ''): Promise<string> {
  return (await browser.navigate(`/api/auth/login?${query}`)).headers.location ?? ''
}

/** Returns the URL to which the callback redirects after a login with the given query, below a path prefix. */
async function landing(browser: Browser, query: string, prefix = ''): Promise<string | undefined> {
  const back = await authorize(browser, `${prefix}/api/auth/login?${query}`)
  return (await openCallback(browser, back)).headers.location
}

test('the login returns to the path in return_to or return_to_raw, unchanged', async t => {
  const { browser } = await startTestServer(t)
  for (const path of ['/', '/page?x=1&y=two#part', `/${'a'.repeat(2047)}`, `/x?${'\\'.repeat(1022)}`, ...returnPaths]) {
    t.is(await landing(browser, `return_to=${encodeURIComponent(path)}`), path, path.slice(0, 80))
    // Browsers do not send the fragment of a URL.
    const [sent = ''] = path.split('#')
    t.is(await landing(browser, `prompt=login&return_to_raw=${sent}`), sent, path.slice(0, 80))
  }
})

test('the login returns to a safe path of this server only, and return_to_raw takes the rest of the query', async t => {
  const { browser } = await startTestServer(t)
  await assertCases(t, 'test/web/routes/return-paths.txt', async query => String(await landing(browser, query)))
  t.is(parameter(await locationOf(browser, 'return_to_raw=/x?a=1&prompt=login'), 'prompt'), '')
})

test('the log says that a return path was changed, and which parameters were ignored', async t => {
  const rules = ['GET /api/delete/** http://127.0.0.1:9/** no-links']
  const { browser, logs } = await startTestServer(t, { settings: { apiProxy: { rules } } })
  t.is((await browser.navigate('//evil.example/x')).statusCode, 404)
  t.is((await browser.navigate('/api/auth/profile')).statusCode, 401)
  for (const query of [
    '',
    'return_to',
    'return_to=',
    'return_to=/a%20b',
    'return_to_raw=http://localhost:8080/x?a=1'
  ]) {
    await landing(browser, query)
    t.deepEqual(logs.all('return_path_changed'), [], query)
  }
  const others = ['https://app2.example/x', '//evil.example', '/api/auth/logout', '/api/delete/1', '/a&return_to=/b']
  for (const value of [...others, `/x%23${'y'.repeat(2048)}`]) await landing(browser, `return_to=${value}`)
  t.deepEqual(
    logs.all('return_path_changed').map(({ level }) => level),
    Array(6).fill('info')
  )
  // A caller has not encoded its URL, or uses the name of another server.
  await landing(browser, 'return_to=/models?id=7&view=top&rd=/x&ada@example.com')
  t.deepEqual(logs.all('login_started').at(-1)?.ignored_parameters, ['view', 'rd'])
})

test('if the server runs below a path prefix, a login without return_to leads to the start page below this prefix', async t => {
  const { browser } = await startTestServer(t, { settings: { platform: { callbackUrl: httpsCallbackUrl } } })
  const prefix = '/tools/viewer'
  t.is(await landing(browser, '', prefix), '/tools/viewer/')
  t.is(await landing(browser, 'return_to=//evil.example', prefix), '/tools/viewer/')
  t.is(await landing(browser, 'return_to=/tools/viewer/page', prefix), '/tools/viewer/page')
})

for (const [trustForwardedFor, callbackUrl] of [
  [0, defaultCallbackUrl],
  [1, defaultCallbackUrl],
  [0, httpsCallbackUrl],
  [1, httpsCallbackUrl]
] as const) {
  const { protocol, pathname } = new URL(callbackUrl)
  test(`the Host and forwarding headers of a request do not change the redirect URI (${protocol} ${trustForwardedFor} trusted proxies)`, async t => {
    const settings = { log: { trustForwardedFor }, platform: { callbackUrl } }
    const { idp, newBrowser } = await startTestServer(t, { settings })
    const path = pathname.replace('callback', 'login')
    const cookiesOf = ({ setCookies }: BrowserResponse) => setCookies.map(({ name, attributes }) => [name, attributes])
    const honest = await newBrowser().get(path)
    const lies = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': protocol === 'https:' ? 'http' : 'https',
      'x-forwarded-port': '1',
      'x-forwarded-prefix': '/evil',
      forwarded: 'for=1.2.3.4;host=evil.example;proto=https',
      'x-original-url': '//evil.example',
      'x-rewrite-url': '//evil.example'
    }
    for (const headers of [lies, ...Object.entries(lies).map(lie => Object.fromEntries([lie]))]) {
      const login = await newBrowser().get(path, { headers })
      t.is(login.statusCode, 302)
      t.true(login.headers.location?.startsWith(`${idp.authorizationEndpoint}?`))
      t.is(parameter(login.headers.location, 'redirect_uri'), callbackUrl)
      t.deepEqual(cookiesOf(login), cookiesOf(honest))
    }
    const logout = await newBrowser().get(path.replace('login', 'logout'), { headers: lies })
    t.is(logout.headers.location, pathname.replace('api/auth/callback', ''))
  })
}
