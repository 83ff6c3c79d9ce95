// Request smuggling: the upstream gets exactly one body for each request, and bytes of one client never become a request or
// response of another.
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { startProxy, startRawUpstream, startUpstream } from '../helpers/upstream.js'

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const start = (method: string, fields: string) =>
  `${method} /api/x HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nSec-Fetch-Site: same-origin\r\n${fields}\r\n`
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** Requests that try to hide a second request. Whatever the response is, the upstream must not receive `/smuggled`. */
const attacks: readonly (readonly [what: string, bytes: string])[] = [
  ['a body with DELETE and a length', start('DELETE', `Content-Length: ${smuggled.length}\r\n`) + smuggled],
  ['a body with DELETE in chunks', `${start('DELETE', 'Transfer-Encoding: chunked\r\n')}${chunk(smuggled)}0\r\n\r\n`],
  ['a body with GET and a length', start('GET', `Content-Length: ${smuggled.length}\r\n`) + smuggled],
  ['a body with GET in chunks', `${start('GET', 'Transfer-Encoding: chunked\r\n')}${chunk(smuggled)}0\r\n\r\n`],
  ['a body with POST and a length', start('POST', `Content-Length: ${smuggled.length}\r\n`) + smuggled],
  ['a body with POST in chunks', `${start('POST', 'Transfer-Encoding: chunked\r\n')}${chunk(smuggled)}0\r\n\r\n`],
  [
    'a length and chunks (CL.TE)',
    `${start('POST', `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`)}0\r\n\r\n${smuggled}`
  ],
  [
    'chunks and a length (TE.CL)',
    `${start('POST', `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n`)}${chunk(smuggled)}0\r\n\r\n`
  ],
  ['two lengths', start('POST', `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`) + smuggled],
  [
    'two lengths in mixed case',
    start('POST', `Content-Length: ${smuggled.length}\r\ncontent-length: ${smuggled.length}\r\n`) + smuggled
  ],
  ['a list of lengths', start('POST', `Content-Length: 0, ${smuggled.length}\r\n`) + smuggled],
  ['a length with a sign', start('POST', `Content-Length: +0\r\n`) + smuggled],
  [
    'an obscured transfer coding',
    start('POST', `Transfer-Encoding: xchunked\r\nContent-Length: ${smuggled.length}\r\n`) + smuggled
  ],
  ['two transfer codings', `${start('POST', `Transfer-Encoding: chunked, identity\r\n`)}0\r\n\r\n${smuggled}`],
  ['a space before the colon', `${start('POST', `Transfer-Encoding : chunked\r\n`)}0\r\n\r\n${smuggled}`],
  ['a folded header', start('POST', `X-Ads-A: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n`)],
  [
    'a framing header that Connection lists',
    start('POST', `Connection: Content-Length\r\nContent-Length: ${smuggled.length}\r\n`) + smuggled
  ],
  ['a chunk extension', `${start('POST', 'Transfer-Encoding: chunked\r\n')}2;a=\n${smuggled}\r\nxx\r\n0\r\n\r\n`],
  [
    'a header in the trailer',
    `${start('POST', 'Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n')}1\r\nx\r\n0\r\nContent-Length: 99\r\n\r\n`
  ],
  ['a bare line feed', start('POST', `X-Ads-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n`)],
  ['a carriage return in a value', start('GET', `X-Ads-Region: a\rX-Evil: b\r\n`)],
  [
    'an upgrade to h2c',
    start('GET', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n') +
      smuggled.replace('GET', 'XYZ')
  ],
  ['Expect', start('POST', `Expect: 100-continue\r\nContent-Length: ${smuggled.length}\r\n`) + smuggled]
]

const limits = { requestTimeout: 700, headersTimeout: 700, connectionsCheckingInterval: 50 }

async function setUp(t: ExecutionContext) {
  const upstream = await startUpstream(t, (request, response) => {
    request.resume()
    request.on('end', () => response.end(request.url))
  })
  const rules = [`GET,POST,DELETE /api/* ${upstream.origin}/*`]
  return {
    upstream,
    ...(await startProxy(t, { rules }, { limits }))
  }
}

for (const [what, bytes] of attacks) {
  test(`a request with ${what} does not become two requests`, async t => {
    const { upstream, raw, browser } = await setUp(t)
    await raw(bytes, { timeoutMs: 1500, end: true })
    // The request of a second client uses the same connection to the upstream if that connection was kept.
    const other = await browser.get('/api/other')
    t.is(other.statusCode, 200)
    t.is(other.text(), '/other')
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
  await raw(`${start('DELETE', 'Content-Length: 5\r\n')}hello`, { answers: 1 })
  await raw(`${start('DELETE', 'Transfer-Encoding: chunked\r\n')}${chunk('hello')}0\r\n\r\n`, { answers: 1 })
  for (const request of upstream.requests) t.is(String(await request.body()), 'hello')
  t.deepEqual(upstream.requests[0]?.headers('content-length'), ['5'])
  const headers = { 'Sec-Fetch-Site': 'same-origin' }
  await browser.request('POST', '/api/x', { headers, body: 'hello' })
  t.deepEqual(upstream.requests[2]?.headers('content-length'), ['5'])
  const socket = connect(server.port, '127.0.0.1')
  socket.write(start('POST', 'Transfer-Encoding: chunked\r\n').replace('COOKIE', cookie) + chunk('one'))
  await eventually(() => upstream.requests.length === 4)
  socket.end(`${chunk('two')}0\r\n\r\n`)
  t.deepEqual(upstream.requests[3]?.headers('transfer-encoding'), ['chunked'])
  t.is(String(await upstream.requests[3]?.body()), 'onetwo')
})

test('bytes after the end of a response do not become the response to the next client', async t => {
  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
  const upstream = await startRawUpstream(t, (socket, text) => {
    const path = text.split('\r\n\r\n').at(-2)?.split(' ')[1] ?? ''
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}${path === '/first' ? evil : ''}`)
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  await browser.get('/api/first')
  for (const path of ['second', 'third']) t.is((await browser.get(`/api/${path}`)).text(), `/${path}`)
})

test('the forbidden body of a response to HEAD does not become the response to the next client', async t => {
  const upstream = await startRawUpstream(t, (socket, text) => {
    const [method, path = ''] = text.split('\r\n\r\n').at(-2)?.split(' ') ?? []
    const body = method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil' : path
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  t.is((await browser.request('HEAD', '/api/first')).statusCode, 200)
  t.is((await browser.get('/api/second')).text(), '/second')
})
