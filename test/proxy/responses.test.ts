// Responses of an upstream as the client gets them through the proxy: statuses, headers and bodies.
import { createHash, randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import test from 'ava'
import { startFixedUpstream, startProxy, startUpstream } from '../helpers/upstream.js'
import { sessionCookiesSet } from '../web/support.js'

const get = 'GET /api/x HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n'
const head = get.replace('GET', 'HEAD')

test('the status of an upstream is passed on', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    response.writeHead(Number(request.url?.split('/').at(-1)), { 'Retry-After': '7', 'Content-Type': 'text/plain' })
    response.end()
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  const statuses = [
    200, 201, 202, 204, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308, 400, 402, 403, 404, 409, 410, 412, 413, 416
  ]
  for (const status of [...statuses, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 599]) {
    const response = await browser.get(`/api/${status}`)
    t.is(response.statusCode, status)
    t.is(response.headers['retry-after'], '7', String(status))
  }
})

test('a 401 or 407 of an upstream becomes 502, and the session stays', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    response.writeHead(Number(request.url?.split('/').at(-1)), {
      'WWW-Authenticate': 'Basic',
      'Proxy-Authenticate': 'Basic'
    })
    response.end('secret of the upstream')
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  const unauthorized = await browser.get('/api/401')
  t.is(unauthorized.statusCode, 502)
  t.is(unauthorized.json().error, 'upstream_unauthorized')
  const proxyAuthentication = await browser.get('/api/407')
  t.is(proxyAuthentication.statusCode, 502)
  t.is(proxyAuthentication.json().error, 'upstream_invalid_response')
  for (const { rawHeaders, setCookies, body } of [unauthorized, proxyAuthentication]) {
    t.notRegex(rawHeaders.join(), /authenticate/i)
    t.is(setCookies.length, 0)
    t.notRegex(String(body), /secret of the upstream/)
  }
  t.is((await browser.get('/api/auth/profile')).statusCode, 200)
  const page = await browser.get('/api/401', { headers: { accept: 'text/html' } })
  t.regex(page.headers['content-type'] ?? '', /text\/html/)
})

test('response headers on the list are passed on, with repeated headers and with bytes above 0x7f', async t => {
  const fields = [
    'Content-Type: text/plain; charset=latin1',
    'Content-Disposition: attachment; filename="Z\xfcrich\xff.pdf"',
    'X-Ads-A: 1',
    'X-Ads-A: 2',
    'Set-Cookie: platform_session=evil',
    'X-Accel-Redirect: /secret',
    'Access-Control-Allow-Origin: *',
    'Connection: X-Ads-Hop, keep-alive',
    'X-Ads-Hop: gone',
    'Keep-Alive: timeout=9',
    'Server: nginx',
    'ETag: "\xe4"',
    'Content-Length: 2'
  ]
  const upstream = await startFixedUpstream(t, `HTTP/1.1 200 OK\r\n${fields.join('\r\n')}\r\n\r\nok`)
  const { raw } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const { bytes, answers } = await raw(get)
  const text = bytes.toString('latin1')
  t.is(answers[0]?.statusCode, 200)
  t.regex(text, /content-disposition: attachment; filename="Z\xfcrich\xff\.pdf"\r\n/i)
  t.regex(text, /x-ads-a: 1\r\n(.*\r\n)*?x-ads-a: 2\r\n/i)
  t.regex(text, /etag: "\xe4"\r\n/i)
  t.notRegex(text, /platform_session=evil|x-accel|access-control|x-ads-hop|server:|timeout=9/i)
  t.regex(text, /content-security-policy: sandbox; default-src 'none'\r\n/i)
  t.is(text.match(/^cache-control: private, no-store\r$/gim)?.length, 1)
  t.is(text.match(/^vary: Cookie\r$/gim)?.length, 1)
  t.true(text.endsWith('\r\n\r\nok'))
})

test('a public response of the upstream becomes private, and a response with a new session cookie must not be cached', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.setHeader('Cache-Control', 'public, max-age=3600, s-maxage=9')
    response.setHeader('ETag', '"1"')
    response.end('x')
  })
  const { browser, clock } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  t.is((await browser.get('/api/x')).headers['cache-control'], 'private, max-age=3600')
  clock.advanceSeconds(4000)
  const refreshed = await browser.get('/api/x')
  t.true(sessionCookiesSet(refreshed).length > 0)
  t.is(refreshed.headers['cache-control'], 'private, no-store')
  const [first, second] = upstream.requests.map(request => request.headers('authorization').join())
  t.not(first, second)
})

test('responses to HEAD and responses with the status 204, 206 and 304 are passed on unchanged', async t => {
  const cases: readonly (readonly [request: string, answer: string, headers: RegExp, body: string])[] = [
    [head, 'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n', /content-length: 1234\r\n/i, ''],
    [head, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', /^HTTP\/1\.1 200 OK/, ''],
    [get, 'HTTP/1.1 204 No Content\r\nETag: "b"\r\n\r\n', /etag: "b"\r\n/i, ''],
    [
      get,
      'HTTP/1.1 304 Not Modified\r\nETag: "c"\r\nContent-Length: 99\r\n\r\n',
      /^HTTP\/1\.1 304[\s\S]*etag: "c"/i,
      ''
    ],
    [
      get,
      'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-4/9\r\nContent-Length: 3\r\n\r\nabc',
      /content-range: bytes 2-4\/9\r\n/i,
      'abc'
    ],
    [get, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', /content-length: 0\r\n/i, '']
  ]
  for (const [request, answer, headers, body] of cases) {
    const upstream = await startFixedUpstream(t, answer, { close: true })
    const { raw } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
    const { bytes, closedByServer } = await raw(request)
    const text = bytes.toString('latin1')
    t.regex(text, headers)
    t.is(text.slice(text.indexOf('\r\n\r\n') + 4), body, answer)
    t.true(closedByServer)
  }
})

test('forwarding headers and credentials of the client are not forwarded', async t => {
  const upstream = await startUpstream(t)
  const { raw } = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x`] })
  const fields = [
    'Host: evil.example',
    'Cookie: COOKIE',
    'Origin: http://localhost:8080',
    'Referer: http://localhost:8080/?code=1',
    'Forwarded: for=1.1.1.1',
    'X-Forwarded-For: 1.1.1.1',
    'X-Forwarded-Host: evil',
    'x-user-id: somebody',
    'Authorization: Bearer evil',
    'Expect: 100-continue',
    'Connection: close, X-Ads-Region, Authorization',
    'X-Ads-Region: EMEA',
    'TE: trailers',
    'Proxy-Authorization: x',
    'Sec-Fetch-Site: same-origin',
    'Content-Type: application/json',
    'Region: US',
    'Content-Length: 2'
  ]
  const { answers } = await raw(`POST /api/x HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n{}`)
  t.is(answers.at(-1)?.statusCode, 200)
  const [request] = upstream.requests
  const names = request?.rawHeaders
    .filter((_, index) => index % 2 === 0)
    .map(name => name.toLowerCase())
    .sort()
  t.deepEqual(names, ['authorization', 'connection', 'content-length', 'content-type', 'host', 'region', 'via'])
  t.notRegex(request?.rawHeaders.join('\n') ?? '', /evil|platform_session|1\.1\.1\.1|somebody/)
  t.is(String(await request?.body()), '{}')
})

test('a compressed body is passed on unchanged, and the proxy compresses nothing', async t => {
  const packed = gzipSync('x'.repeat(10_000))
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/packed') response.setHeader('Content-Encoding', 'gzip').end(packed)
    else response.setHeader('Content-Type', 'text/plain').end('x'.repeat(10_000))
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  const headers = { 'Accept-Encoding': 'gzip, br' }
  const response = await browser.get('/api/packed', { headers })
  t.is(response.headers['content-encoding'], 'gzip')
  t.deepEqual(response.body, packed)
  const plain = await browser.get('/api/plain', { headers })
  t.is(plain.headers['content-encoding'], undefined)
  t.is(plain.body.length, 10_000)
})

test('redirects are not followed, and a Location that a rule covers is mapped to a path of this server', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.writeHead(302, { Location: '/v1/hubs/next?page=2' })
    response.end()
  })
  const settings = { platform: { callbackUrl: 'https://app.example.com/base/api/auth/callback' } }
  const { browser } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] }, { settings })
  const response = await browser.get('/base/api/hubs/first')
  t.is(response.statusCode, 302)
  t.is(response.headers.location, '/base/api/hubs/next?page=2')
  t.is(upstream.requests.length, 1)
})

test('informational responses are not passed on', async t => {
  const informed = 'HTTP/1.1 103 Early Hints\r\nLink: </x.js>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n'
  const upstream = await startFixedUpstream(t, `${informed}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
  const { raw } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const { bytes } = await raw(get)
  t.regex(bytes.toString('latin1'), /^HTTP\/1\.1 200 OK\r\n/)
  t.notRegex(bytes.toString('latin1'), / 103 | 102 |Link/)
})

const broken: readonly (readonly [what: string, answer: string])[] = [
  ['a text that is not HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['an incomplete head', 'HTTP/1.1 200 OK\r\nContent-Type: te'],
  ['no bytes', ''],
  ['a Content-Length of letters', 'HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nx'],
  ['two different Content-Length headers', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy'],
  ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  ['a head that is too long', `HTTP/1.1 200 OK\r\n${'X-Ads-Filler: xxxxxxxxxxxxxxxxxxxxxxxx\r\n'.repeat(3000)}\r\n`],
  ['white space before a colon', 'HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx'],
  ['a zero byte', 'HTTP/1.1 200 OK\r\nX-Ads-A: a\0b\r\nContent-Length: 1\r\n\r\nx'],
  ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n']
]
for (const [what, answer] of broken) {
  test(`a response of an upstream with ${what} becomes 502`, async t => {
    const upstream = await startFixedUpstream(t, answer, { close: true })
    const { raw, logs } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
    const { answers, bytes } = await raw(get)
    t.is(answers[0]?.statusCode, 502, bytes.toString('latin1'))
    t.is(JSON.parse(String(answers[0]?.body)).error, 'upstream_invalid_response')
    t.truthy(
      logs.find(({ event, error_code }) => event === 'request_failed' && error_code === 'upstream_invalid_response')
    )
  })
}

test('an upstream that cannot be reached becomes 502, and only the log has the reason', async t => {
  // No test listens on port 1. The port of a server that was closed could already belong to another test.
  const rules = ['GET /api/gone http://127.0.0.1:1/x', 'GET /api/nowhere https://nowhere.invalid/x']
  const { browser, logs } = await startProxy(t, { rules })
  for (const [path, pattern] of [
    ['gone', /ECONNREFUSED/],
    ['nowhere', /ENOTFOUND|EAI_AGAIN/]
  ] as const) {
    const response = await browser.get(`/api/${path}`)
    t.is(response.statusCode, 502)
    t.is(response.json().error, 'upstream_unreachable')
    t.notRegex(response.text(), pattern)
    const reasons = logs.lines.filter(line => pattern.test(line))
    t.true(reasons.length > 0, path)
  }
})

test('large responses arrive completely, with a Content-Length and in chunks', async t => {
  const content = randomBytes(8 * 1024 * 1024)
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/length') response.setHeader('Content-Length', content.length)
    else response.flushHeaders()
    response.end(content)
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  for (const path of ['length', 'chunked']) {
    const response = await browser.get(`/api/${path}`)
    t.is(hash(response.body), hash(content), path)
    t.is(response.headers['content-length'], path === 'length' ? String(content.length) : undefined)
  }
})
