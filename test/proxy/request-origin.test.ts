// Requests from other sites that the proxy rejects because of the headers that browsers add.
import test, { type ExecutionContext } from 'ava'
import { type ProxiedServer, startProxy, startUpstream, type TestUpstream } from '../helpers/upstream.js'
import { sessionHeader } from '../http/support.js'

type Headers = Readonly<Record<string, string>>
const origin = 'http://localhost:8080'
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const unsafe = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

async function start(t: ExecutionContext, csrfHeader?: string) {
  const upstream = await startUpstream(t)
  const routes = [`GET,POST,PUT,PATCH,DELETE /api/x ${upstream.origin}/x`]
  const server = await startProxy(t, { routes, ...(csrfHeader && { csrfHeader }) })
  return { upstream, server, ask: (method: string, headers: Headers) => ask(server, method, headers) }
}

async function ask({ browser }: ProxiedServer, method: string, headers: Headers): Promise<number> {
  return (await browser.request(method, '/api/x', { headers: { cookie: sessionHeader(browser), ...headers } }))
    .statusCode
}

function noneArrived(t: ExecutionContext, { requests }: TestUpstream) {
  t.deepEqual(
    requests.map(({ method, rawHeaders }) => [method, rawHeaders.join()]),
    []
  )
}

test('requests from other sites get 403 with any method', async t => {
  const { upstream, ask } = await start(t, 'X-CSRF')
  for (const method of methods) {
    for (const site of ['cross-site', 'same-site', 'Same-Origin', 'same-origin, cross-site', '']) {
      t.is(await ask(method, { 'Sec-Fetch-Site': site, Origin: origin, 'X-CSRF': '1' }), 403, `${method} ${site}`)
    }
  }
  noneArrived(t, upstream)
})

test('a proxied request with an unsafe method must come from a page of this origin', async t => {
  const { upstream, ask } = await start(t)
  const refused: readonly Headers[] = [
    {},
    { 'Sec-Fetch-Site': 'none' },
    { Origin: 'null' },
    { Origin: 'http://localhost:8081' },
    { Origin: 'https://localhost:8080' },
    { Origin: 'http://localhost:8080.evil.example' },
    { Origin: 'http://evil.example/?http://localhost:8080' },
    { Origin: '' },
    { Referer: `${origin}/` },
    { 'X-CSRF': '1' },
    { 'Content-Type': 'application/json' }
  ]
  for (const method of unsafe) {
    for (const headers of refused) t.is(await ask(method, headers), 403, `${method} ${JSON.stringify(headers)}`)
  }
  noneArrived(t, upstream)
  const accepted: readonly Headers[] = [
    { 'Sec-Fetch-Site': 'same-origin' },
    { Origin: origin },
    { Origin: 'HTTP://LOCALHOST:8080' },
    { Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'empty' }
  ]
  for (const method of unsafe) {
    for (const headers of accepted) t.is(await ask(method, headers), 200, `${method} ${JSON.stringify(headers)}`)
  }
})

test('a GET request is forwarded unless its headers say that it comes from another origin', async t => {
  const { upstream, ask } = await start(t)
  const refused: readonly Headers[] = [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: 'http://localhost:8081', 'Sec-Fetch-Site': 'same-origin' }
  ]
  for (const headers of refused) t.is(await ask('GET', headers), 403, JSON.stringify(headers))
  noneArrived(t, upstream)
  const accepted: readonly Headers[] = [
    {},
    { 'Sec-Fetch-Site': 'none' },
    { 'Sec-Fetch-Site': 'same-origin' },
    { Origin: origin }
  ]
  for (const headers of accepted) t.is(await ask('GET', headers), 200, JSON.stringify(headers))
})

test('a WebSocket or another upgrade is refused even from a page of this origin', async t => {
  const { upstream, ask } = await start(t, 'X-CSRF')
  const handshakes: readonly Headers[] = [
    { Connection: 'Upgrade', Upgrade: 'websocket' },
    { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c' },
    { 'Sec-WebSocket-Version': '13' }
  ]
  for (const headers of handshakes) {
    t.is(await ask('GET', { ...headers, Origin: origin, 'X-CSRF': '1' }), 403, JSON.stringify(headers))
  }
  noneArrived(t, upstream)
})

test('a prefetch is refused unless a page of this origin asks for it', async t => {
  const { upstream, ask } = await start(t)
  for (const site of ['none', 'same-site', 'cross-site']) {
    t.is(await ask('GET', { 'Sec-Purpose': 'prefetch', 'Sec-Fetch-Site': site }), 403, site)
  }
  t.is(await ask('GET', { 'Sec-Purpose': 'prefetch;prerender' }), 403)
  noneArrived(t, upstream)
  t.is(await ask('GET', { 'Sec-Purpose': 'prefetch;prerender', 'Sec-Fetch-Site': 'same-origin' }), 200)
})

test('a proxied response cannot be loaded as a script, style, worker or frame', async t => {
  const { upstream, ask } = await start(t)
  const refused = (
    'script style worker sharedworker serviceworker audioworklet paintworklet xslt frame iframe embed object ' +
    'manifest report json webidentity fencedframe Empty'
  ).split(' ')
  for (const dest of [...refused, '']) {
    for (const method of methods) {
      t.is(await ask(method, { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': dest }), 403, `${method} ${dest}`)
    }
  }
  noneArrived(t, upstream)
  for (const dest of ['empty', 'image', 'audio', 'video', 'track', 'font', 'document']) {
    t.is(await ask('GET', { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': dest }), 200, dest)
  }
})

test('if a CSRF header is configured, every method needs this header, and unsafe methods then need no Origin header', async t => {
  const { upstream, ask } = await start(t, 'X-CSRF')
  for (const method of methods) {
    t.is(await ask(method, { Origin: origin, 'Sec-Fetch-Site': 'same-origin' }), 403, method)
  }
  for (const method of methods) {
    t.is(await ask(method, { 'x-csrf': '1', Origin: 'https://evil.example' }), 403, method)
  }
  noneArrived(t, upstream)
  for (const method of methods) t.is(await ask(method, { 'x-csrf': '1' }), 200, method)
  t.true(upstream.requests.every(request => request.headers('x-csrf').length === 0))
})

test('responses have no CORS headers, and OPTIONS gets 405 with the allowed methods of the path', async t => {
  const { upstream, server } = await start(t)
  const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' }
  const preflight = await server.browser.request('OPTIONS', '/api/x', { headers })
  t.is(preflight.statusCode, 405)
  t.is(preflight.headers.allow, 'GET, HEAD, POST, PUT, PATCH, DELETE')
  const refused = await server.browser.get('/api/x', { headers: { Origin: 'https://evil.example' } })
  t.is(refused.statusCode, 403)
  const get = await server.browser.get('/api/x', { headers: { Origin: origin } })
  for (const { rawHeaders } of [preflight, refused, get]) t.notRegex(rawHeaders.join('\n'), /access-control/i)
  t.is(upstream.requests.length, 1)
})

test('the path and the method are checked first, then the origin of the request, then the session', async t => {
  const { upstream, server } = await start(t)
  const stranger = server.newBrowser()
  const foreign = { 'Sec-Fetch-Site': 'cross-site' }
  t.is((await stranger.get('/api/x', { headers: foreign })).statusCode, 403)
  t.is((await stranger.get('/api/x/../x', { headers: foreign })).statusCode, 400)
  t.is((await stranger.request('OPTIONS', '/api/x', { headers: foreign })).statusCode, 405)
  const anonymous = await stranger.get('/api/x')
  t.is(anonymous.statusCode, 401)
  t.is(anonymous.body.length, 0)
  t.is(anonymous.headers['cache-control'], 'private, no-store')
  noneArrived(t, upstream)
})
