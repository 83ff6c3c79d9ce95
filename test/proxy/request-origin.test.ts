// Requests that the proxy rejects because of the headers that browsers add. The headers are in
// test/web/every-request/request-origins.txt.
import test, { type ExecutionContext } from 'ava'
import { startProxy, startUpstream } from '../helpers/upstream.js'

const origin = 'http://localhost:8080'

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
