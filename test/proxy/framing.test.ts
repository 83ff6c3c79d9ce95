// Request smuggling: the upstream gets exactly one body for each request, and bytes of one client never become a request or
// response of another.
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { startProxy, startRawUpstream, startUpstream } from '../helpers/upstream.js'
import { startBehind } from './clients.js'

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const start = (method: string, ...fields: readonly string[]) =>
  [
    `${method} /api/x HTTP/1.1`,
    'Host: localhost',
    'Cookie: COOKIE',
    'Sec-Fetch-Site: same-origin',
    ...fields,
    '',
    ''
  ].join('\r\n')
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const end = '0\r\n\r\n'
const chunked = 'Transfer-Encoding: chunked'
const whole = `Content-Length: ${smuggled.length}`

/** Requests that try to hide a second request. Whatever the response is, the upstream must not receive `/smuggled`. */
const attacks: Readonly<Record<string, string>> = {
  'a body with DELETE and a length': start('DELETE', whole) + smuggled,
  'a body with DELETE in chunks': start('DELETE', chunked) + chunk(smuggled) + end,
  'a body with GET and a length': start('GET', whole) + smuggled,
  'a body with GET in chunks': start('GET', chunked) + chunk(smuggled) + end,
  'a body with POST and a length': start('POST', whole) + smuggled,
  'a body with POST in chunks': start('POST', chunked) + chunk(smuggled) + end,
  'a length and chunks (CL.TE)': start('POST', 'Content-Length: 5', chunked) + end + smuggled,
  'chunks and a length (TE.CL)': start('POST', chunked, 'Content-Length: 4') + chunk(smuggled) + end,
  'two lengths': start('POST', 'Content-Length: 0', whole) + smuggled,
  'two lengths in mixed case': start('POST', whole, whole.toLowerCase()) + smuggled,
  'a list of lengths': start('POST', `Content-Length: 0, ${smuggled.length}`) + smuggled,
  'a length with a sign': start('POST', 'Content-Length: +0') + smuggled,
  'an obscured transfer coding': start('POST', 'Transfer-Encoding: xchunked', whole) + smuggled,
  'two transfer codings': start('POST', 'Transfer-Encoding: chunked, identity') + end + smuggled,
  'a space before the colon': start('POST', 'Transfer-Encoding : chunked') + end + smuggled,
  'a folded header': start('POST', 'X-Ads-A: a', ` ${chunked}`, 'Content-Length: 0'),
  'a framing header that Connection lists': start('POST', 'Connection: Content-Length', whole) + smuggled,
  'a chunk extension': `${start('POST', chunked)}2;a=\n${smuggled}\r\nxx\r\n${end}`,
  'a header in the trailer': `${start('POST', chunked, 'Trailer: Content-Length')}1\r\nx\r\n0\r\nContent-Length: 99\r\n\r\n`,
  'a bare line feed': start('POST', `X-Ads-A: b\n${chunked}`, 'Content-Length: 0'),
  'a carriage return in a value': start('GET', 'X-Ads-Region: a\rX-Evil: b'),
  'an upgrade to h2c':
    start('GET', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk') +
    smuggled.replace('GET', 'XYZ'),
  Expect: start('POST', 'Expect: 100-continue', whole) + smuggled
}

/** So that the attacks that are incomplete requests end soon. */
const short = { requestTimeout: 700, headersTimeout: 700, connectionsCheckingInterval: 50 }

async function setUp(t: ExecutionContext, limits = {}) {
  const upstream = await startUpstream(t, (request, response) => {
    request.resume().on('end', () => response.end(request.url))
  })
  const rules = [`GET,POST,DELETE /api/* ${upstream.origin}/*`]
  return { upstream, ...(await startProxy(t, { rules }, { limits })) }
}

for (const [what, bytes] of Object.entries(attacks)) {
  test(`a request with ${what} does not become two requests`, async t => {
    const { upstream, raw, browser } = await setUp(t, short)
    await raw(bytes, { timeoutMs: 1500, end: true })
    // The request of a second client uses the same connection to the upstream if that connection was kept.
    const other = await browser.get('/api/other')
    t.deepEqual([other.statusCode, other.text()], [200, '/other'])
    for (const request of upstream.requests) {
      t.true(['/x', '/other'].includes(request.url), request.url)
      t.true(request.headers('content-length').length + request.headers('transfer-encoding').length <= 1)
      t.deepEqual(request.headers('x-evil'), [])
    }
    t.is(upstream.requests.filter(({ url }) => url === '/other').length, 1)
  })
}

test('a body is forwarded with its Content-Length or in chunks, as it was sent, also with DELETE', async t => {
  const { upstream, raw, browser, server, cookie } = await setUp(t)
  await raw(`${start('DELETE', 'Content-Length: 5')}hello`, { answers: 1 })
  await raw(start('DELETE', chunked) + chunk('hello') + end, { answers: 1 })
  for (const request of upstream.requests) t.is(String(await request.body()), 'hello')
  t.deepEqual(upstream.requests[0]?.headers('content-length'), ['5'])
  await browser.request('POST', '/api/x', { headers: { 'Sec-Fetch-Site': 'same-origin' }, body: 'hello' })
  t.deepEqual(upstream.requests[2]?.headers('content-length'), ['5'])
  const socket = connect(server.port, '127.0.0.1')
  socket.write(start('POST', chunked).replace('COOKIE', cookie) + chunk('one'))
  await eventually(() => upstream.requests.length === 4)
  socket.end(chunk('two') + end)
  t.deepEqual(upstream.requests[3]?.headers('transfer-encoding'), ['chunked'])
  t.is(String(await upstream.requests[3]?.body()), 'onetwo')
})

const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'

test('neither bytes after the end of a response nor the forbidden body of a response to HEAD become the response to the next client', async t => {
  const starting = startRawUpstream(t, (socket, text) => {
    const [method, path = ''] = text.split('\r\n\r\n').at(-2)?.split(' ') ?? []
    const body = method === 'HEAD' ? evil : path
    const after = path === '/first' && method === 'GET' ? evil : ''
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}${after}`)
  })
  const { browser } = await startBehind(t, starting)
  for (const method of ['GET', 'HEAD']) {
    t.is((await browser.request(method, '/api/first')).statusCode, 200)
    for (const path of ['second', 'third']) t.is((await browser.get(`/api/${path}`)).text(), `/${path}`)
  }
})
