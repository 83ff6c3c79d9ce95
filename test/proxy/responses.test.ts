// Responses of an upstream as the client gets them through the proxy: statuses, headers and bodies.
import type { IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import test from 'ava'
import type { Context } from 'koa'
import { createUnauthorizedReport } from '#src/web/proxy/upstream-failure.js'
import { collectLogs } from '../helpers/logs.js'
import { startFixedUpstream, startProxy, startRawUpstream, startUpstream } from '../helpers/upstream.js'
import { words } from '../helpers/words.js'
import { sessionCookiesSet } from '../web/support.js'
import { startBehind } from './clients.js'

const get = 'GET /api/x HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n'
const head = get.replace('GET', 'HEAD')

/** The status at the end of the URL, for upstreams that respond with any status. */
const statusIn = ({ url = '' }: IncomingMessage) => Number(url.slice(1))

test('the status of an upstream is passed on', async t => {
  const starting = startUpstream(t, (request, response) => {
    response.writeHead(statusIn(request), { 'Retry-After': '7' }).end()
  })
  const { browser, logs } = await startBehind(t, starting)
  const statuses = words`
    200 201 202 204 205 206 226 300 301 302 303 304 307 308 400 402 403 404 409 410 412 413 416 418 422 429 451 499
    500 501 502 503 504 599`
  for (const status of statuses) {
    const { statusCode, headers } = await browser.get(`/api/${status}`)
    t.deepEqual([statusCode, headers['retry-after']], [Number(status), '7'])
  }
  t.is(logs.first('request_rejected'), undefined)
})

test('a 401 or 407 of an upstream becomes 502, and the session stays', async t => {
  const starting = startUpstream(t, (request, response) => {
    response.writeHead(statusIn(request), { 'WWW-Authenticate': 'Basic', 'Proxy-Authenticate': 'Basic' })
    response.end('secret of the upstream')
  })
  const { browser } = await startBehind(t, starting)
  for (const [status, error] of [
    [401, 'upstream_unauthorized'],
    [407, 'upstream_invalid_response']
  ] as const) {
    const response = await browser.get(`/api/${status}`)
    t.deepEqual([response.statusCode, response.json().error, response.setCookies], [502, error, []])
    t.notRegex(response.rawHeaders.join(), /authenticate/i)
    t.notRegex(response.text(), /secret of the upstream/)
  }
  t.is((await browser.get('/api/auth/profile')).statusCode, 200)
})

test('the page of a 401 of an API has a link to a new login, and one warning counts the 401 responses of an hour', async t => {
  const starting = startUpstream(t, (_request, response) => void response.writeHead(401).end())
  const { browser, logs } = await startBehind(t, starting)
  const page = await browser.get('/api/401', { headers: { accept: 'text/html' } })
  t.is(page.statusCode, 502)
  t.regex(page.text(), /<h1[^>]*>A service refused your access/)
  t.regex(page.text(), /href="\/api\/auth\/login\?(?:return_to=[^"]*&#38;)?prompt=login/)
  const { error, error_description: description } = (await browser.get('/api/401')).json()
  t.is(error, 'upstream_unauthorized')
  t.regex(String(description), /refused the access token of your session \(401\)/)
  t.deepEqual(
    logs.all('upstream_unauthorized').map(({ level, route, count }) => [level, route, count]),
    [['warn', '/api/*', 1]]
  )
  t.is(logs.all('request_failed').length, 0)
})

test('the 401 responses of each rule are counted until its next warning, an hour later', async t => {
  const { log, entries } = await collectLogs('info')
  let now = 0
  const report = createUnauthorizedReport(log, () => now)
  const ctx = { get: () => '' } as unknown as Context
  const hour = 3_600_000
  for (const [time, route] of [
    [0, 'a'],
    [1, 'a'],
    [2, 'b'],
    [hour - 1, 'a'],
    [hour, 'a'],
    [2 * hour, 'a']
  ] as const) {
    now = time
    report(ctx, route)
  }
  t.deepEqual(
    entries.map(({ route, count }) => [route, count]),
    [
      ['a', 1],
      ['b', 1],
      ['a', 3],
      ['a', 1]
    ]
  )
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
    'ETag: "\xe4"'
  ]
  const length = 'Content-Length: 2'
  for (const order of [fields.concat(length), [length].concat(fields)]) {
    const starting = startRawUpstream(t, socket => {
      socket.write(`HTTP/1.1 200 OK\r\n${order.join('\r\n')}\r\n\r\n`, 'latin1')
      setTimeout(() => socket.end('ok'), 50)
    })
    const { raw } = await startBehind(t, starting)
    const { bytes, answers } = await raw(get)
    const text = bytes.toString('latin1')
    t.is(answers[0]?.statusCode, 200)
    t.regex(text, /content-disposition: attachment; filename="Z\xfcrich\xff\.pdf"\r\n/i)
    t.regex(text, /x-ads-a: 1\r\n(.*\r\n)*?x-ads-a: 2\r\n/i)
    t.regex(text, /etag: "\xe4"\r\n/i)
    t.notRegex(text, /platform_session=evil|x-accel|access-control|x-ads-hop|server:|timeout=9/i)
    t.regex(text, /content-security-policy: sandbox; default-src 'none'; form-action 'none'; base-uri 'none'\r\n/i)
    t.is(text.match(/^cache-control: private, no-store\r$/gim)?.length, 1)
    t.is(text.match(/^vary: Cookie\r$/gim)?.length, 1)
    t.true(text.endsWith('\r\n\r\nok'))
  }
})

test('a public response of the upstream becomes private, and a response with a new session cookie must not be cached', async t => {
  const starting = startUpstream(t, (_request, response) => {
    response.setHeader('Cache-Control', 'public, max-age=3600, s-maxage=9').setHeader('ETag', '"1"').end('x')
  })
  const { browser, clock, upstream } = await startBehind(t, starting)
  t.is((await browser.get('/api/x')).headers['cache-control'], 'private, max-age=3600')
  clock.advanceSeconds(4000)
  const refreshed = await browser.get('/api/x')
  t.true(sessionCookiesSet(refreshed).length > 0)
  t.is(refreshed.headers['cache-control'], 'private, no-store')
  const [first, second] = upstream.requests.map(request => request.headers('authorization').join())
  t.not(first, second)
})

const unchanged: readonly (readonly [
  request: string,
  status: string,
  fields: string,
  passedOn: RegExp,
  body?: string
])[] = [
  [head, '200 OK', 'Content-Length: 1234\r\nETag: "a"', /content-length: 1234\r\n/i],
  [head, '200 OK', 'Transfer-Encoding: chunked', /^HTTP\/1\.1 200 OK/],
  [get, '204 No Content', 'ETag: "b"', /etag: "b"\r\n/i],
  [get, '304 Not Modified', 'ETag: "c"\r\nContent-Length: 99', /^HTTP\/1\.1 304[\s\S]*etag: "c"/i],
  [get, '206 Partial Content', 'Content-Range: bytes 2-4/9\r\nContent-Length: 3', /range: bytes 2-4\/9\r\n/i, 'abc'],
  [get, '200 OK', 'Content-Length: 0', /content-length: 0\r\n/i]
]
test('responses to HEAD and responses with the status 204, 206 and 304 are passed on unchanged', async t => {
  for (const [request, status, fields, passedOn, body = ''] of unchanged) {
    const answer = `HTTP/1.1 ${status}\r\n${fields}\r\n\r\n${body}`
    const { raw } = await startBehind(t, startFixedUpstream(t, answer, { close: true }))
    const { bytes, closedByServer } = await raw(request)
    const text = bytes.toString('latin1')
    t.regex(text, passedOn)
    t.is(text.slice(text.indexOf('\r\n\r\n') + 4), body, answer)
    t.true(closedByServer)
  }
})

test('forwarding headers and credentials of the client are not forwarded, and one debug line has their names', async t => {
  const { raw, upstream, logs } = await startBehind(t, startUpstream(t))
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
  const [{ rawHeaders, body } = { rawHeaders: [], body: undefined }] = upstream.requests
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
  t.deepEqual(names.sort(), words`authorization connection content-length content-type host region via x-request-id`)
  t.notRegex(rawHeaders.join('\n'), /evil|platform_session|1\.1\.1\.1|somebody/)
  t.is(String(await body?.()), '{}')
  const lines = logs.all('request_headers_not_forwarded')
  t.is(lines.length, 1)
  const { level, route, headers } = lines[0] as { readonly headers: readonly string[] } & (typeof lines)[0]
  t.deepEqual([level, route], ['debug', '/api/*'])
  for (const name of ['cookie', 'x-user-id', 'forwarded']) t.true(headers.includes(name), name)
  t.false(headers.includes('region'))
  t.notRegex(JSON.stringify(lines), /evil|platform_session=|1\.1\.1\.1|somebody/)
})

test('one debug line has the names of the response headers that are not forwarded', async t => {
  const starting = startUpstream(t, (_request, response) => void response.setHeader('X-Powered-By', 's3cret').end())
  const { browser, logs } = await startBehind(t, starting)
  await browser.get('/api/x')
  const lines = logs.all('response_headers_not_forwarded')
  t.deepEqual(
    lines.map(({ level, route, headers }) => [level, route, headers]),
    [['debug', '/api/*', ['x-powered-by']]]
  )
  t.notRegex(logs.lines.join(''), /s3cret/)
})

test('a compressed body is passed on unchanged, and the proxy compresses nothing', async t => {
  const packed = gzipSync('x'.repeat(10_000))
  const starting = startUpstream(t, (request, response) => {
    if (request.url === '/packed') response.setHeader('Content-Encoding', 'gzip').end(packed)
    else response.setHeader('Content-Type', 'text/plain').end('x'.repeat(10_000))
  })
  const { browser } = await startBehind(t, starting)
  const headers = { 'Accept-Encoding': 'gzip, br' }
  const response = await browser.get('/api/packed', { headers })
  t.is(response.headers['content-encoding'], 'gzip')
  t.deepEqual(response.body, packed)
  const plain = await browser.get('/api/plain', { headers })
  t.deepEqual([plain.headers['content-encoding'], plain.body.length], [undefined, 10_000])
})

test('redirects are not followed, and a Location that a rule covers is mapped to a path of this server', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.writeHead(302, { Location: '/v1/hubs/next?page=2' }).end()
  })
  const settings = { platform: { callbackUrl: 'https://app.example.com/base/api/auth/callback' } }
  const { browser } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] }, { settings })
  const { statusCode, headers } = await browser.get('/base/api/hubs/first')
  t.deepEqual([statusCode, headers.location], [302, '/base/api/hubs/next?page=2'])
  t.is(upstream.requests.length, 1)
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
    const { raw, logs } = await startBehind(t, startFixedUpstream(t, answer, { close: true }))
    const { answers, bytes } = await raw(get)
    t.is(answers[0]?.statusCode, 502, bytes.toString('latin1'))
    t.is(JSON.parse(String(answers[0]?.body)).error, 'upstream_invalid_response')
    t.is(logs.first('request_failed')?.error_code, 'upstream_invalid_response')
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
    t.deepEqual([response.statusCode, response.json().error], [502, 'upstream_unreachable'])
    t.notRegex(response.text(), pattern)
    t.regex(logs.lines.join(''), pattern)
  }
})
