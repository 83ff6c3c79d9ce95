// The helpers that `platform-auth-server/testing` offers to applications.
import http from 'node:http'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { createTestBrowser } from '#src/testing/browser.js'
import { startTestServer, type TestServerOptions } from '#src/testing/index.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { eventually } from '../helpers/eventually.js'
import { listen } from '../helpers/ports.js'
import { startUpstream } from '../helpers/upstream.js'

async function start(t: ExecutionContext, options?: TestServerOptions) {
  const server = await startTestServer(options)
  t.teardown(() => server.close())
  return server
}

test('a test signs users in without a browser, each with a session of their own', async t => {
  const server = await start(t, { settings: { mode: 'dual' } })
  const [ada, grace] = await Promise.all([server.signIn(), server.signIn('Grace Hopper')])
  t.deepEqual(await (await ada.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
  t.deepEqual(await (await grace.fetch('/api/auth/profile')).json(), { name: 'Grace Hopper' })
  const { access_token } = (await (await ada.fetch('/api/auth/token')).json()) as { access_token: unknown }
  t.is(typeof access_token, 'string')
  t.is((await server.newBrowser().fetch('/api/auth/profile')).status, 401)

  const page = await ada.open('/api/auth/logout')
  t.is(page.url, `${server.url}/`)
  t.regex(String((await ada.open('/nothing')).headers.get('content-type')), /^text\/html/)
  t.is((await ada.fetch('/api/auth/profile')).status, 401)
  t.is((await grace.fetch('/api/auth/profile')).status, 200)
})

test('another HTTP client can use the session with the Cookie header of the browser', async t => {
  const server = await start(t)
  const ada = await server.signIn()
  const headers = { cookie: ada.cookieHeader('/api/auth/profile') }
  t.is((await fetch(`${server.url}/api/auth/profile`, { headers })).status, 200)
  t.is((await fetch(`${server.url}/api/auth/login`, { headers })).status, 403, 'the login rejects the fetch of Node')
})

test('proxy rules of the settings are used, and those of the demo only if a test asks for them', async t => {
  const upstream = await startUpstream(t)
  const rules = [`GET /api/files/** ${upstream.origin}/**`]
  const server = await start(t, { settings: { apiProxy: { rules } } })
  const ada = await server.signIn()
  t.is((await ada.fetch('/api/files/one')).status, 200)
  t.is((await ada.fetch('/api/hubs')).status, 404)
  const withApis = await start(t, { demo: { apis: true } })
  t.is((await (await withApis.signIn()).fetch('/api/hubs')).status, 200)
})

test('a login that the server does not complete fails with the response', async t => {
  const server = await start(t, { settings: { access: { allow: ['@elsewhere.example'] }, log: { level: 'fatal' } } })
  await t.throwsAsync(server.signIn(), {
    message: /^signing in as Ada Lovelace ended at .* 403: .*account_not_allowed/
  })
})

test('a test server keeps everything in memory although the settings name Redis', async t => {
  const redis = {
    redis: { url: 'rediss://127.0.0.1:1', caFile: '/no/file' },
    session: { store: 'redis' }
  } as const
  const server = await start(t, {
    settings: redis,
    extension: app =>
      void app.use(async (ctx, next) => {
        if (ctx.path !== '/note') return next()
        await requireTokens(ctx as never, async () => {
          const session = ctx.session as unknown as { note?: string }
          session.note ??= 'x'.repeat(20_000)
          ctx.body = String(session.note.length)
        })
      })
  })
  const ada = await server.signIn()
  for (let request = 0; request < 2; request++) t.is(await (await ada.fetch('/note')).text(), '20000')
  t.is((await ada.fetch('/demo/expire', { method: 'POST' })).status, 204)
  t.is((await ada.fetch('/api/auth/profile')).status, 200)
})

test('signal, redirect and credentials have the same effect as in a browser, and a form sends its origin', async t => {
  const seen: http.IncomingMessage[] = []
  const server = http.createServer((request, response) => {
    seen.push(request)
    const to = new URL(request.url ?? '', 'http://none').searchParams.get('to')
    if (request.url === '/never') return
    if (request.url === '/half') return void response.writeHead(200).write('half')
    if (to !== null) return void response.writeHead(302, { Location: to, 'Set-Cookie': 'b=2' }).end()
    response.setHeader('Set-Cookie', 'a=1').end('end')
  })
  const port = await listen(t, server)
  const origin = `http://127.0.0.1:${port}`
  const other = `http://localhost:${port}`
  const browser = createTestBrowser(origin)
  const last = (name: string) => seen.at(-1)?.headers[name]

  for (const path of ['/never', '/half']) {
    const abort = new AbortController()
    const reading = browser.fetch(path, { signal: abort.signal }).then(response => response.text())
    await eventually(() => seen.at(-1)?.url === path)
    if (path === '/half') await new Promise(resolve => setImmediate(resolve))
    abort.abort(new Error('enough'))
    await t.throwsAsync(reading, { message: 'enough' })
    await t.throwsAsync(browser.fetch('/', { signal: abort.signal }), { message: 'enough' })
  }
  await t.throwsAsync(browser.fetch('/never', { signal: AbortSignal.timeout(1) }), { any: true, name: 'TimeoutError' })

  await t.throwsAsync(browser.fetch('/?to=/x', { redirect: 'error' }), {
    instanceOf: TypeError,
    message: /redirects to \/x/
  })
  t.false((await browser.fetch('/', { redirect: 'error' })).redirected)
  t.true((await browser.fetch('/?to=/x')).redirected)
  t.is((await browser.fetch('/?to=/x', { redirect: 'manual' })).status, 302)

  const credentials = [
    ['/', 'omit', undefined],
    ['/', 'same-origin', 'b=2; a=1'],
    [other, 'same-origin', undefined],
    [other, 'include', undefined],
    [other, 'include', 'a=1']
  ] as const
  for (const [url, mode, cookie] of credentials) {
    await browser.fetch(url, { credentials: mode })
    t.is(last('cookie'), cookie, `${url} ${mode}`)
  }

  const chains = [
    [browser.fetch, '/', 'GET', 'same-origin', undefined],
    [browser.fetch, '/', 'POST', 'same-origin', origin],
    [browser.fetch, other, 'POST', 'cross-site', origin],
    [browser.fetch, `/?to=${other}/`, 'GET', 'cross-site', undefined],
    [browser.open, '/', 'GET', 'none', undefined],
    [browser.open, `/?to=${other}/`, 'GET', 'none', undefined],
    [browser.open, '/', 'POST', 'same-origin', origin],
    [browser.open, `${other}/`, 'POST', 'same-origin', other],
    [browser.open, `/?to=${other}/?to=${origin}/`, 'POST', 'cross-site', undefined]
  ] as const
  for (const [send, url, method, site, sentOrigin] of chains) {
    await send(url, { method, ...(method === 'POST' && { body: 'a=b' }) })
    t.deepEqual([last('sec-fetch-site'), last('origin')], [site, sentOrigin], `${method} ${url}`)
  }
})

test('a browser follows redirects as browsers do, and keeps the cookies of each host and path', async t => {
  const seen: (readonly [request: string, cookie: string | undefined])[] = []
  const server = http.createServer(async (request, response) => {
    seen.push([`${request.method} ${request.url} ${await text(request)}`.trim(), request.headers.cookie])
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://127.0.0.1')
    const status = Number(searchParams.get('status') ?? 200)
    const location = pathname === '/loop' ? request.url : '/end'
    if (pathname === '/set')
      response.setHeader('Set-Cookie', ['a=1; Path=/', 'b=2', 'c=3; Path=/deep; HttpOnly', 'd=; Path=/; Max-Age=0'])
    if (pathname === '/clear') response.setHeader('Set-Cookie', 'a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT')
    response.writeHead(status, status === 200 ? {} : { Location: location }).end('the body')
  })
  const port = await listen(t, server)
  const browser = createTestBrowser(`http://127.0.0.1:${port}`)

  await browser.fetch('/set')
  t.is(browser.cookieHeader('/other'), 'a=1; b=2')
  t.is(browser.cookieHeader('/deep/er'), 'a=1; b=2; c=3')
  t.is(browser.cookieHeader('/deeper'), 'a=1; b=2')
  await browser.fetch(`http://localhost:${port}/other-host`)
  t.deepEqual(seen.at(-1), ['GET /other-host', undefined])
  await browser.fetch('/clear')
  const requests = [
    ['POST', 302, 'GET /end'],
    ['POST', 307, 'POST /end text'],
    ['HEAD', 301, 'HEAD /end']
  ] as const
  for (const [method, status, last] of requests) {
    const end = await browser.fetch(`/go?status=${status}`, { method, ...(method === 'POST' && { body: 'text' }) })
    t.is(end.url, `http://127.0.0.1:${port}/end`)
    t.is(await end.text(), method === 'HEAD' ? '' : 'the body')
    t.deepEqual(seen.at(-1), [last, 'b=2'])
  }
  const redirect = await browser.open('/go?status=303', { redirect: 'manual' })
  t.is(redirect.headers.get('location'), '/end')
  await t.throwsAsync(browser.fetch('/loop?status=302'), { message: /more than 20 redirects/ })
})
