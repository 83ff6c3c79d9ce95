import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
// The transport imports got at its first call. It is imported here, so that loading got does not count toward time limits.
import 'got'
import test, { type ExecutionContext } from 'ava'
import { type Metrics, noMetrics } from '#src/base/metrics.js'
import { type TransportRequest, waitOf } from '#src/provider/attempt.js'
import { ProviderError, type ProviderProblem } from '#src/provider/provider-error.js'
import { createTransport, type Transport, type TransportOptions } from '#src/provider/transport.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { createClock } from '../helpers/clock.js'
import { listen } from '../helpers/ports.js'
import { startUpstream } from '../helpers/upstream.js'
import { holdsNone } from './secrets.js'

// A limit that no test reaches, even on a slow machine.
const PATIENT_MS = 60_000

/** A server that takes the place of the provider and records its requests. */
async function startProvider(t: ExecutionContext, listener: RequestListener) {
  const { origin, requestLines, connections, requests } = await startUpstream(t, listener)
  /** The bodies of the requests so far, in order. */
  const bodies = () => Promise.all(requests.map(async ({ body }) => String(await body())))
  return { url: origin, requests: requestLines, connections, bodies }
}

/** Resolves when the first connection is closed on the provider's side. */
async function closed([socket]: readonly Socket[]): Promise<void> {
  if (!socket || socket.closed) return
  await new Promise<void>(resolve => socket.once('close', () => resolve()))
}

function setUp(t: ExecutionContext, timeoutMs = PATIENT_MS, options: TransportOptions = {}): Transport {
  const transport = createTransport(timeoutMs, options)
  t.teardown(() => transport.close())
  return transport
}

const secrets = ['the code of this login', 'basic-credentials', 'a body nobody may quote']

function post(url: string): TransportRequest {
  return {
    endpoint: 'token',
    url,
    form: { code: secrets[0] as string },
    headers: { authorization: `Basic ${secrets[1]}` }
  }
}

function get(url: string): TransportRequest {
  return { endpoint: 'userinfo', url, headers: { authorization: `Basic ${secrets[1]}` } }
}

/** Handles each request with the next listener, and further requests with the last one. */
function inTurn(...listeners: [RequestListener, ...RequestListener[]]): RequestListener {
  let turn = 0
  return (request, response) => {
    const listener = listeners[Math.min(turn++, listeners.length - 1)] ?? listeners[0]
    listener(request, response)
  }
}

const answering =
  (status: number, body: unknown = {}, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
/** Sends the beginning of a response, and then does something else. */
const beginning =
  (then: (response: ServerResponse) => void, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(200, headers)
    response.write('{"access_token":"a body nobody may quote', () => then(response))
  }
const good = answering(200, { fine: true })
const hang: RequestListener = () => {}
const reset: RequestListener = request => request.socket.resetAndDestroy()
const hangUp: RequestListener = request => request.socket.destroy()

async function failure(t: ExecutionContext, call: Promise<unknown>, problem: ProviderProblem): Promise<ProviderError> {
  const error = await t.throwsAsync(call, { instanceOf: ProviderError })
  t.is(error?.problem, problem)
  holdsNone(t, error, secrets)
  return error as ProviderError
}

test('the Date and Location headers of a response are returned if they are valid', async t => {
  const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
  const location = 'https://elsewhere.example/'
  const { url } = await startProvider(
    t,
    inTurn(answering(302, {}, { date, location }), answering(200, {}, { date: 'yesterday' }))
  )
  const transport = setUp(t)
  t.like(await transport.call(get(url)), { date: Date.UTC(1994, 10, 6, 8, 49, 37), location })
  t.like(await transport.call(get(url)), { date: undefined, location: undefined })
})

test('each call is counted with its status or its problem, and a slot in a queue is counted only if there is none', async t => {
  const refused = (status: number, error: string) => answering(status, { error })
  const { url } = await startProvider(
    t,
    inTurn(good, answering(429), refused(401, 'invalid_client'), refused(400, 'invalid_grant'), reset)
  )
  const counted: (readonly unknown[])[] = []
  const metrics: Metrics = {
    ...noMetrics,
    observe: (_name, seconds, labels) => void counted.push([labels, seconds >= 0])
  }
  const transport = setUp(t, PATIENT_MS, { metrics, limits: { inProgress: 1, waiting: 0 } })
  await transport.call(post(url))
  await transport.call(get(url))
  for (let calls = 1; calls <= 2; calls++) await transport.call(post(url))
  await failure(t, transport.call(post(url)), 'unreachable')
  const release = await transport.enterQueue('refresh', 'token')
  await failure(t, transport.enterQueue('refresh', 'token'), 'queue_full')
  release()
  t.deepEqual(counted, [
    [{ endpoint: 'token', code: 200 }, true],
    [{ endpoint: 'userinfo', code: 429 }, true],
    [{ endpoint: 'token', code: 401, error: 'client_rejected' }, true],
    [{ endpoint: 'token', code: 400 }, true],
    [{ endpoint: 'token', error: 'unreachable' }, true],
    [{ endpoint: 'token', error: 'queue_full' }, true]
  ])
})

test('a form is sent by POST and anything else by GET, without compression', async t => {
  const headers: IncomingHttpHeaders[] = []
  const { url, requests, bodies } = await startProvider(t, (request, response) => {
    headers.push(request.headers)
    response.end('{}')
  })
  const transport = setUp(t)
  await transport.call({ endpoint: 'token', url, form: { a: '1 2', b: 'ü:/+&=' }, headers: { 'x-more': 'yes' } })
  await transport.call({ endpoint: 'userinfo', url })
  t.deepEqual(requests, ['POST /', 'GET /'])
  t.deepEqual(await bodies(), ['a=1+2&b=%C3%BC%3A%2F%2B%26%3D', ''])
  t.like(headers[0], {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
    'user-agent': 'platform-auth-server',
    'x-more': 'yes'
  })
  for (const { 'accept-encoding': encoding } of headers) t.is(encoding, undefined)
})

const redirects = [301, 302, 303, 307, 308]
for (const [method, send, statuses] of [
  ['GET', get, [200, ...redirects, 400, 401, 403, 404, 408, 429]],
  ['POST', post, [200, 201, ...redirects, 400, 401, 403, 404, 429, 500, 502, 503, 504]]
] as const) {
  test(`any complete response to a ${method} is returned with its parsed JSON, not followed and not repeated`, async t => {
    const transport = setUp(t)
    for (const status of statuses) {
      const answer = answering(status, { status }, { location: '/elsewhere' })
      const { url, requests } = await startProvider(t, inTurn(answer, good))
      t.like(await transport.call(send(url)), { status, json: { status }, retryAfterSeconds: undefined })
      t.deepEqual(requests, [`${method} /`])
    }
  })
}

const zoe = JSON.stringify({ name: 'Zo\u00eb' })
const jsonType = 'application/json'
const bodies: readonly (readonly [what: string, Record<string, string>, body: Buffer])[] = [
  ['gzip', { 'content-encoding': 'gzip' }, gzipSync(zoe)],
  ['x-gzip', { 'content-encoding': 'x-gzip' }, gzipSync(zoe)],
  ['gzip in capitals', { 'content-encoding': 'GZIP' }, gzipSync(zoe)],
  ['deflate', { 'content-encoding': 'deflate' }, deflateSync(zoe)],
  ['deflate without a header', { 'content-encoding': 'deflate' }, deflateRawSync(zoe)],
  ['br', { 'content-encoding': 'br' }, brotliCompressSync(zoe)],
  ['two codings', { 'content-encoding': 'deflate, gzip' }, gzipSync(deflateSync(zoe))],
  ['identity', { 'content-encoding': 'identity' }, Buffer.from(zoe)],
  ['a coding that was already removed', { 'content-encoding': 'gzip' }, Buffer.from(zoe)],
  ['a byte order mark', {}, Buffer.from(`\ufeff${zoe}`)],
  ['a byte order mark inside gzip', { 'content-encoding': 'gzip' }, gzipSync(`\ufeff${zoe}`)],
  ['latin1', { 'content-type': `${jsonType}; charset=ISO-8859-1` }, Buffer.from(zoe, 'latin1')],
  ['latin1 in quotes', { 'content-type': `${jsonType};charset="latin1"` }, Buffer.from(zoe, 'latin1')],
  ['UTF-8 that is called latin1', { 'content-type': `${jsonType};charset=latin1` }, Buffer.from(zoe)],
  ['an unknown charset', { 'content-type': `${jsonType};charset=x-unknown` }, Buffer.from(zoe)],
  ['UTF-16 with a mark', {}, Buffer.from(`\ufeff${zoe}`, 'utf16le')],
  ['UTF-16 without a mark', { 'content-type': `${jsonType};charset=utf-16le` }, Buffer.from(zoe, 'utf16le')]
]

for (const [what, headers, body] of bodies) {
  test(`a response is read: ${what}`, async t => {
    const { url } = await startProvider(t, (_request, response) => response.writeHead(200, headers).end(body))
    for (const send of [get, post]) t.deepEqual((await setUp(t).call(send(url))).json, { name: 'Zo\u00eb' })
  })
}

for (const [coding, body] of [
  ['gzip', gzipSync('{}').subarray(0, 12)],
  ['br', Buffer.from('no brotli')],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])]
] as const) {
  test(`a body that cannot be decompressed is no JSON, and its status counts: ${coding}`, async t => {
    const { url } = await startProvider(t, (_request, response) => {
      response.writeHead(400, { 'content-encoding': coding }).end(body)
    })
    t.like(await setUp(t).call(post(url)), { status: 400, json: undefined })
  })
}

// Members of gzip can be joined, so a megabyte contains a gigabyte.
// This is less than the limit before the decompression.
const gigabyte = Buffer.concat(Array(1000).fill(gzipSync(Buffer.alloc(1_000_000))))
for (const [what, coding, body] of [
  ['a gigabyte of zeros in a megabyte', 'gzip', gigabyte],
  ['gzip in gzip', 'gzip, gzip', gzipSync(gigabyte)],
  ['a byte too many', 'br', brotliCompressSync(Buffer.alloc(1024 * 1024 + 1))]
] as const) {
  test(`a response is rejected if it is too large after its decompression: ${what}`, async t => {
    const { url } = await startProvider(t, (_request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(body)
    })
    const error = await failure(t, setUp(t).call(post(url)), 'invalid_response')
    t.regex(error.message, /larger than 1 MiB/)
  })
}

const slow: readonly (readonly [what: string, listener: RequestListener])[] = [
  ['never begins', hang],
  ['never ends', beginning(() => {})],
  [
    'arrives too slowly',
    beginning(response => {
      const drip = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(drip))
    })
  ]
]

for (const [what, listener] of slow) {
  test(`a response that ${what} fails with a timeout, and its connection is closed`, async t => {
    const { url, requests, connections } = await startProvider(t, listener)
    const error = await failure(t, setUp(t, 4000).call(post(url)), 'timeout')
    t.true(error.durationMs >= 3500)
    t.deepEqual(requests, ['POST /'])
    await closed(connections)
    t.pass()
  })
}

test('the second attempt of a GET has only the time that the first attempt has left', async t => {
  const clock = createClock()
  const late: RequestListener = (...exchange) => {
    clock.advance(3000)
    answering(500)(...exchange)
  }
  const tooLate: RequestListener = () => {
    clock.advance(2000)
    // After the limit, a response that has arrived still gets time to be read.
    clock.advance(100)
  }
  const { url, requests } = await startProvider(t, inTurn(late, tooLate))
  await failure(t, setUp(t, 5000, { clock }).call(get(url)), 'timeout')
  t.is(requests.length, 2)
})

test('a response body of 1 MiB is accepted, and a larger one is rejected', async t => {
  const MIB = 1024 * 1024
  const { url } = await startProvider(t, (request, response) => {
    response.writeHead(200).end(`"${'x'.repeat(Number(request.url?.slice(1)) - 2)}"`)
  })
  const transport = setUp(t)
  t.is(((await transport.call(post(`${url}/${MIB}`))).json as string).length, MIB - 2)
  const error = await failure(t, transport.call(post(`${url}/${MIB + 1}`)), 'invalid_response')
  t.regex(error.message, /larger than 1 MiB/)
})

test('an endless response is cut off at the size limit, and the connection is closed', async t => {
  const piece = Buffer.alloc(64 * 1024, 'x')
  const { url, requests, connections } = await startProvider(t, (_request, response) => {
    response.writeHead(200)
    const flood = () => {
      while (!response.destroyed && response.write(piece)) {
        // writes until the socket buffer is full
      }
    }
    response.on('drain', flood)
    flood()
  })
  await failure(t, setUp(t).call(get(url)), 'invalid_response')
  await closed(connections)
  t.is(requests.length, 1)
})

const broken: readonly (readonly [what: string, listener: RequestListener])[] = [
  ['a connection reset', reset],
  ['a connection closed without a response', hangUp],
  ['an incomplete response with a length', beginning(({ socket }) => socket?.end(), { 'content-length': '100' })],
  ['an incomplete chunked response', beginning(({ socket }) => socket?.end())],
  ['a response that is not HTTP', request => request.socket.end('SSH-2.0-OpenSSH_9.9\r\n')]
]

for (const [what, listener] of broken) {
  test(`after ${what} a POST fails and is not sent again, and a GET is sent once more, but not a third time`, async t => {
    const transport = setUp(t)
    const once = await startProvider(t, inTurn(listener, good))
    await failure(t, transport.call(post(once.url)), 'unreachable')
    t.deepEqual(once.requests, ['POST /'])
    const again = await startProvider(t, inTurn(listener, good))
    t.deepEqual((await transport.call(get(again.url))).json, { fine: true })
    t.deepEqual(again.requests, ['GET /', 'GET /'])
    const twice = await startProvider(t, inTurn(listener, listener, good))
    await failure(t, transport.call(get(twice.url)), 'unreachable')
    t.is(twice.requests.length, 2)
  })
}

test('a GET that fails with a server error is sent once more, and the second response is returned', async t => {
  const recovering = await startProvider(t, inTurn(answering(503), good))
  const transport = setUp(t)
  t.is((await transport.call(get(recovering.url))).status, 200)
  const failing = await startProvider(t, inTurn(answering(500), answering(503), good))
  t.is((await transport.call(get(failing.url))).status, 503)
  t.is(failing.requests.length, 2)
})

test('a POST on a reused connection that the provider closes is not sent again', async t => {
  const { url, requests, connections } = await startProvider(t, inTurn(good, hangUp, good))
  const transport = setUp(t)
  await transport.call(post(url))
  await failure(t, transport.call(post(url)), 'unreachable')
  t.is(connections.length, 1)
  t.is(requests.length, 2)
})

test('an idle connection is closed, but not one that waits for a response', async t => {
  const { url, connections } = await startProvider(t, good)
  const transport = setUp(t, PATIENT_MS, { idleSocketMs: 100 })
  await transport.call(post(url))
  await closed(connections)
  await transport.call(post(url))
  t.is(connections.length, 2)
  const waiting = await startProvider(t, (request, response) => setTimeout(() => good(request, response), 500))
  t.is((await transport.call(post(waiting.url))).status, 200)
  t.is(waiting.requests.length, 1)
})

test.serial('with an untrusted certificate, nothing is sent, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async t => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.teardown(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED)
  let requests = 0
  const server = https.createServer(selfSignedCertificate(), (_request, response) => {
    requests++
    response.end('{}')
  })
  const url = `https://localhost:${await listen(t, server)}`
  const error = await failure(t, setUp(t).call({ ...post(url), timeoutMs: PATIENT_MS }), 'unreachable')
  t.regex(error.message, /CERT/)
  t.is(requests, 0)
})

test('close() closes every connection', async t => {
  const { url, connections } = await startProvider(t, good)
  const transport = setUp(t, PATIENT_MS, { idleSocketMs: PATIENT_MS * 10 })
  await transport.call(post(url))
  transport.close()
  await closed(connections)
  t.is(connections.length, 1)
})

test('a request can avoid the connections that are already open, which the provider may have closed', async t => {
  const seen: (Socket | undefined)[] = []
  const { url, connections } = await startProvider(t, (request, response) => {
    // Each connection works for one request only.
    if (seen.includes(request.socket)) return void request.socket.resetAndDestroy()
    seen.push(request.socket)
    response.end('{}')
  })
  const transport = setUp(t)
  await transport.call(post(url))
  await t.throwsAsync(transport.call(post(url)), { message: /ECONNRESET/ })
  await transport.call(post(url))
  t.is((await transport.call({ ...post(url), onNewConnection: true })).status, 200)
  t.is(connections.length, 3)
})

const at = Date.parse('Fri, 27 Nov 2026 10:00:00 GMT')
const date = new Date(at).toUTCString()
const inSeconds = (seconds: number) => new Date(at + seconds * 1000).toUTCString()

for (const [what, status, headers, expected] of [
  ['seconds', 429, { 'retry-after': '7' }, 7],
  ['no seconds', 429, { 'retry-after': '0' }, 0],
  ['six digits', 429, { 'retry-after': '999999' }, 999_999],
  ['seven digits', 429, { 'retry-after': '1000000' }, undefined],
  ['a negative number', 429, { 'retry-after': '-1' }, undefined],
  ['a fraction', 429, { 'retry-after': '1.5' }, undefined],
  ['an exponent', 429, { 'retry-after': '1e3' }, undefined],
  ['nothing', 429, { 'retry-after': '' }, undefined],
  ['a date', 503, { 'retry-after': inSeconds(7), date }, 7],
  ['a date without Date', 503, { 'retry-after': inSeconds(7) }, 7],
  ['a distant date', 429, { 'retry-after': inSeconds(3600), date }, 60],
  ['a date in the past', 429, { 'retry-after': inSeconds(-5), date }, 0],
  ['another text', 429, { 'retry-after': 'soon' }, undefined],
  ['Okta', 429, { 'x-rate-limit-reset': String(at / 1000 + 9), date }, 9],
  ['Okta with another status', 200, { 'x-rate-limit-reset': String(at / 1000 + 9), date }, undefined],
  ['both', 429, { 'retry-after': '3', 'x-rate-limit-reset': String(at / 1000 + 9), date }, 3]
] as const) {
  test(`the wait that a provider asks for: ${what}`, t => {
    t.is(waitOf(status, headers, at), expected)
  })
}
