// Requests from other sites that the proxy rejects because of the headers that browsers add.
import test, { type ExecutionContext } from 'ava'
import { rejectionOf } from '#src/web/every-request/request-origin.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'

type Headers = Readonly<Record<string, string>>
const origin = 'http://localhost:8080'
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const unsafe = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Asserts that the check of the proxy rejects, or accepts, each of these headers with each of these methods. */
function assertEach(
  t: ExecutionContext,
  expected: 'rejected' | 'accepted',
  methods: readonly string[],
  cases: readonly Headers[],
  csrfHeader?: string
) {
  for (const method of methods) {
    for (const sent of cases) {
      const headers = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value]))
      const reason = rejectionOf({ methods: [method], headers }, 'proxy', { publicOrigin: origin, csrfHeader })
      t.is(reason === undefined, expected === 'accepted', `${method} ${JSON.stringify(sent)}: ${reason}`)
    }
  }
}

test('requests from other sites are rejected with any method', t => {
  const sites = ['cross-site', 'same-site', 'Same-Origin', 'same-origin, cross-site', '']
  const headers = sites.map(site => ({ 'Sec-Fetch-Site': site, Origin: origin, 'X-CSRF': '1' }))
  assertEach(t, 'rejected', methods, headers, 'X-CSRF')
})

test('a proxied request with an unsafe method must come from a page of this origin', t => {
  assertEach(t, 'rejected', unsafe, [
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
  ])
  assertEach(t, 'accepted', unsafe, [
    { 'Sec-Fetch-Site': 'same-origin' },
    { Origin: origin },
    { Origin: 'HTTP://LOCALHOST:8080' },
    { Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'empty' }
  ])
})

test('a GET request is accepted unless its headers say that it comes from another origin', t => {
  const otherPort = { Origin: 'http://localhost:8081' }
  assertEach(t, 'rejected', ['GET'], [{ Origin: 'https://evil.example' }, { Origin: 'null' }, otherPort])
  const rewritten = { ...otherPort, 'Sec-Fetch-Site': 'same-origin' }
  assertEach(t, 'accepted', ['GET', 'POST'], [rewritten, { ...rewritten, Connection: 'Upgrade', Upgrade: 'h2c' }])
  const sites = ['none', 'same-origin'].map(site => ({ 'Sec-Fetch-Site': site }))
  assertEach(t, 'accepted', ['GET'], [{}, ...sites, { Origin: origin }])
})

test('a WebSocket is rejected even from a page of this origin', t => {
  const handshakes: readonly Headers[] = [
    { Connection: 'Upgrade', Upgrade: 'websocket' },
    { Connection: 'Upgrade', Upgrade: 'h2c, websocket' },
    { 'Sec-WebSocket-Version': '13' }
  ]
  const headers = handshakes.map(handshake => ({ ...handshake, Origin: origin, 'X-CSRF': '1' }))
  assertEach(t, 'rejected', ['GET'], headers, 'X-CSRF')
})

test('a prefetch is rejected unless a page of this origin asks for it', t => {
  const sites = ['none', 'same-site', 'cross-site'].map(site => ({ 'Sec-Purpose': 'prefetch', 'Sec-Fetch-Site': site }))
  const prerender = { 'Sec-Purpose': 'prefetch;prerender' }
  assertEach(t, 'rejected', ['GET'], [...sites, prerender])
  assertEach(t, 'accepted', ['GET'], [{ ...prerender, 'Sec-Fetch-Site': 'same-origin' }])
})

test('a proxied response cannot be loaded as a script, style, worker or frame', t => {
  const harmful = (
    'script style worker sharedworker serviceworker audioworklet paintworklet xslt frame iframe embed object ' +
    'manifest report json webidentity fencedframe Empty'
  ).split(' ')
  const loadedAs = (dest: string) => ({ 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': dest })
  assertEach(t, 'rejected', methods, [...harmful, ''].map(loadedAs))
  assertEach(t, 'accepted', ['GET'], ['empty', 'image', 'audio', 'video', 'track', 'font', 'document'].map(loadedAs))
})

test('if a CSRF header is configured, every method needs this header, and unsafe methods then need no Origin header', t => {
  const withoutHeader = { Origin: origin, 'Sec-Fetch-Site': 'same-origin' }
  assertEach(t, 'rejected', methods, [withoutHeader, { 'x-csrf': '1', Origin: 'https://evil.example' }], 'X-CSRF')
  assertEach(t, 'accepted', methods, [{ 'x-csrf': '1' }], 'X-CSRF')
})

async function start(t: ExecutionContext, csrfHeader?: string) {
  const upstream = await startUpstream(t)
  const rules = [`GET,POST,PUT,PATCH,DELETE /api/x ${upstream.origin}/x`]
  return { upstream, server: await startProxy(t, { rules, ...(csrfHeader && { csrfHeader }) }) }
}

test('the proxy requires the configured CSRF header and does not forward it', async t => {
  const { upstream, server } = await start(t, 'X-CSRF')
  t.is((await server.browser.fetch('/api/x')).statusCode, 403)
  t.is((await server.browser.get('/api/x', { headers: { 'x-csrf': '1' } })).statusCode, 200)
  const forwarded = upstream.requests.map(request => request.headers('x-csrf'))
  t.deepEqual(forwarded, [[]])
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
  t.deepEqual([anonymous.statusCode, anonymous.body.length], [401, 0])
  t.is(anonymous.headers['cache-control'], 'private, no-store')
  t.is(upstream.requests.length, 0)
})
