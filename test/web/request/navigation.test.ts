// A user who opens a protected URL in a tab gets a page, and a script gets an empty body.
import test from 'ava'
import type { Context, Middleware } from 'koa'
import { isPrefetch, opensDocument } from '#src/web/request/navigation.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { assertCases } from '../../helpers/case-file.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { openCallback, signIn, startTestServer, type TestServerOptions } from '../../helpers/server.js'
import { startUpstream } from '../../helpers/upstream.js'
import { authorize, handledBy, refreshOf, statusesOf } from '../support.js'

type Headers = Readonly<Record<string, string>>

const html = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const mode = (mode: string, dest: string) => ({ 'sec-fetch-mode': mode, 'sec-fetch-dest': dest })

test('a request opens a document if a browser shows its response as a page', t =>
  assertCases(t, 'test/web/request/navigations.txt', text => {
    const [method = '', ...lines] = text.split(' | ')
    const headers = Object.fromEntries(lines.map(line => line.split(': ')))
    return opensDocument(method, headers) ? 'a document' : 'no document'
  }))

const marks: readonly Headers[] = [
  { 'sec-purpose': 'prefetch;prerender' },
  { purpose: 'Prefetch' },
  { 'x-purpose': 'preview' },
  { 'x-sec-purpose': 'PREFETCH' },
  { 'x-moz': 'prefetch' },
  { 'next-router-prefetch': '1' },
  { 'next-router-prefetch': '' },
  { 'next-router-segment-prefetch': '/_tree' }
]

test('prefetches of browsers and frameworks are recognized, and a client-side navigation is none', t => {
  for (const headers of marks) t.true(isPrefetch(headers), JSON.stringify(headers))
  for (const headers of [{}, { rsc: '1' }, { purpose: '' }]) t.false(isPrefetch(headers))
})

test('a marked prefetch of a login or a logout gets 403 and changes nothing', async t => {
  const { browser } = await startTestServer(t)
  await signIn(browser)
  for (const headers of marks) {
    for (const path of ['/api/auth/login', '/api/auth/logout']) {
      for (const response of [await browser.fetch(path, { headers }), await browser.navigate(path, { headers })]) {
        t.is(response.statusCode, 403, `${path} ${JSON.stringify(headers)}`)
        t.deepEqual(response.setCookies, [])
      }
    }
    t.is((await browser.fetch('/api/auth/profile', { headers })).statusCode, 200)
  }
})

async function startProtected(t: Parameters<typeof startUpstream>[0], options: TestServerOptions = {}) {
  const upstream = await startUpstream(t)
  const rules = [
    `GET,POST /api/files/** ${upstream.origin}/files/**`,
    `GET /api/actions/** ${upstream.origin}/actions/** no-links`
  ]
  const settings = { ...options.settings, apiProxy: { rules, ...options.settings?.apiProxy } }
  const custom: Middleware = (ctx, next) => {
    if (!/^\/(api\/)?own\b/.test(ctx.path)) return next()
    return requireTokens(ctx as Context, async () => {
      ctx.body = 'the handler ran'
    })
  }
  return { ...(await startTestServer(t, { mode: 'dual', settings, parts: handledBy(custom) })), upstream }
}

const signInLink = /<a class="button" href="([^"]*)"[^>]*>Sign in</

for (const path of ['/own?a=1&b=%2F', '/api/own', '/api/files/folder%2520/report.txt?v=2']) {
  test(`a bookmark to ${path} shows the sign-in page, and signing in returns to it`, async t => {
    const { browser, upstream } = await startProtected(t)
    const withoutMetadata = { 'sec-fetch-mode': undefined, 'sec-fetch-dest': undefined, 'sec-fetch-site': undefined }
    for (const headers of [{}, withoutMetadata]) {
      const page = await browser.navigate(path, { headers })
      t.is(page.statusCode, 401)
      t.like(page.headers, { 'session-status': 'signed-out', 'cache-control': 'no-store' })
      t.regex(page.text(), /<h1>You are not signed in<\/h1>/)
      const link = signInLink.exec(page.text())?.[1]?.replaceAll('&#38;', '&') ?? ''
      t.is(link, `/api/auth/login?return_to=${encodeURIComponent(path)}`)
    }
    for (const response of [await browser.fetch(path), await browser.get(path, { headers: { accept: '*/*' } })]) {
      t.deepEqual([response.statusCode, response.body.length], [401, 0])
    }
    // The chain of redirects leads through the provider, so its last request is cross-site.
    const login = `/api/auth/login?return_to=${encodeURIComponent(path)}`
    const opened = await browser.navigate(login, { from: browser.origin ?? '', follow: true })
    t.is(opened.statusCode, 200)
    t.is(opened.url.pathname + opened.url.search, path)
    t.is(upstream.requests.length, path.includes('files') ? 1 : 0)
  })
}

test('a proxied URL accepts links from other sites, unless its rule has no-links', async t => {
  const { browser } = await startProtected(t)
  await signIn(browser)
  const from = 'https://portal.example'
  const link = await browser.navigate('/api/files/a', { from })
  t.is(link.headers['cross-origin-opener-policy'], undefined)
  t.deepEqual(statusesOf([link, await browser.navigate('/api/actions/a', { from })]), [200, 403])
})

for (const [base, path] of [
  ['', '/api/actions/a?b=1'],
  ['', '/api//actions/a'],
  ['', '/api/%61ctions/a'],
  ['/team', '/team/api/actions/a']
] as const) {
  test(`a login does not return to ${path} of a rule with no-links, although the page of a slow callback opens itself again`, async t => {
    const callbackUrl = `http://localhost:8080${base}/api/auth/callback`
    const { browser, clock, idp, upstream } = await startProtected(t, { settings: { platform: { callbackUrl } } })
    const login = `/api/auth/login?return_to=${encodeURIComponent(path)}`
    const back = await authorize(browser, login, { from: 'https://evil.example' })
    const callback = back.replace(callbackUrl, '/api/auth/callback')
    idp.fail('token', faults.status(429))
    const page = await openCallback(browser, callback)
    t.deepEqual([page.statusCode, refreshOf(page)], [503, page.headers['retry-after']])
    clock.advanceSeconds(Number(refreshOf(page)))
    const repeated = await browser.navigate(callback, { from: browser.origin ?? '' })
    t.deepEqual([repeated.statusCode, repeated.headers.location], [302, `${base}/`])
    t.is(upstream.requests.length, 0)
  })
}

test('with apiProxy.csrfHeader, the refusal of a navigation names the setting, whichever other reason there is', async t => {
  const { browser } = await startProtected(t, { settings: { apiProxy: { csrfHeader: 'X-CSRF' } } })
  await signIn(browser)
  for (const headers of [{}, { origin: 'https://evil.example' }, { 'sec-purpose': 'prefetch' }]) {
    const page = await browser.navigate('/api/actions/a', { from: 'https://portal.example', headers })
    t.is(page.statusCode, 403)
    t.regex(page.text(), /<h1>The server refused this request<\/h1>[\s\S]*\(setting apiProxy\.csrfHeader\)/)
  }
})

test('a refusal says what the browser sent, accuses nobody, and has a link that opens the URL again', async t => {
  const { browser } = await startProtected(t)
  await signIn(browser)
  const from = 'https://portal.example'
  const byScript = { 'sec-fetch-site': undefined, 'sec-fetch-mode': undefined, origin: from }
  const tryAgain = '<a class="button" href="" target="_top">Try again</a>'
  for (const [path, headers, says, hasLink] of [
    [
      '/api/auth/token',
      { 'sec-fetch-site': 'cross-site' },
      /by another site: it sent Sec-Fetch-Site: cross-site\./,
      true
    ],
    ['/api/auth/profile', { 'sec-fetch-site': '<b>', ...html }, /it sent Sec-Fetch-Site: \(an unusual value\)/, true],
    ['/own', byScript, /it sent Origin: https:\/\/portal\.example/, true],
    ['/api/auth/login', mode('cors', 'empty'), /a script cannot fetch it/, true],
    ['/api/auth/logout', { 'next-router-prefetch': '1' }, /must not be prefetched/, false]
  ] as const) {
    const page = await browser.navigate(path, { from, headers })
    t.is(page.statusCode, 403, path)
    t.regex(page.text(), says)
    t.notRegex(page.text(), /tried to use|attack/i)
    t.is(page.text().includes(tryAgain), hasLink, path)
  }
  const form = await browser.request('POST', '/own', { headers: { ...html, 'sec-fetch-site': 'cross-site' } })
  t.is(form.statusCode, 403)
  t.false(form.text().includes('href=""'), 'a link cannot send a form again')
})

test('a service worker that sends a navigation again can log in and out, and a script cannot log in', async t => {
  const { browser } = await startProtected(t)
  for (const again of [mode('same-origin', 'empty'), mode('navigate', 'empty')])
    await logInAndOut({ ...html, ...again })
  t.is((await browser.fetch('/api/auth/login', { headers: { ...html } })).statusCode, 403)
  t.is((await browser.fetch('/api/auth/login', { headers: mode('same-origin', 'empty') })).statusCode, 403)

  async function logInAndOut(again: Headers) {
    t.is((await browser.navigate('/own', { headers: again })).statusCode, 401)
    t.regex((await browser.fetch('/own', { headers: again })).text(), /You are not signed in/)
    const from = browser.origin ?? ''
    const back = await authorize(browser, '/api/auth/login?return_to=/own', { from, headers: again })
    t.is((await browser.fetch(back, { headers: again })).statusCode, 302)
    t.is((await browser.fetch('/own')).statusCode, 200)
    t.is((await browser.fetch('/api/auth/logout', { headers: again })).statusCode, 302)
    t.is((await browser.fetch('/own')).statusCode, 401)
  }
})
