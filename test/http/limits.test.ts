// The limits of the HTTP server for sizes, framing and time. Raw sockets, because no HTTP client would send most of this.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Browser } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { sendRaw } from '../helpers/raw.js'
import { signIn, startTestServer, type TestServerOptions } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'

/** A request line and headers; `more` are whole lines. */
function head(start: string, more = ''): string {
  return `${start} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
}

function cookieHeader({ cookies }: Browser): string {
  return cookies
    .all()
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ')
}

const healthz = head('GET /healthz')
const lastHealthz = head('GET /healthz', 'Connection: close\r\n')

async function start(t: ExecutionContext, options: TestServerOptions = {}) {
  const started = await startTestServer(t, options)
  const send = (pieces: string | readonly string[], more: Parameters<typeof sendRaw>[2] = {}) =>
    sendRaw(started.server.port, pieces, more)
  const refusals = () =>
    started.logs.entries.filter(({ event }) => event === 'client_error').map(({ status }) => status)
  const noFault = () =>
    t.is(
      started.logs.find(({ level }) => Number(level) >= 40),
      undefined
    )
  return { ...started, send, refusals, noFault }
}

test('thirty KiB of cookies are accepted, and the session among them is found', async t => {
  const { browser } = await start(t)
  await signIn(browser)
  const session = cookieHeader(browser)
  const others = Array.from({ length: 8 }, (_, index) => `other${index}=${'x'.repeat(3900)}`).join('; ')
  const cookie = `${others.slice(0, 30 * 1024 - session.length)}; ${session}`
  t.true(cookie.length >= 30 * 1024)
  t.is((await browser.get('/api/auth/profile', { headers: { cookie } })).statusCode, 200)
  t.is((await browser.get('/', { headers: { cookie } })).statusCode, 200)
})

test('headers beyond 32 KiB are 431, in the form of every other error, and logged', async t => {
  const { send, refusals, noFault } = await start(t)
  const many = Array.from({ length: 1500 }, (_, index) => `X-Header-${index}: ${'y'.repeat(20)}\r\n`).join('')
  const tooMuch = [
    head('GET /healthz', `Cookie: ${'x'.repeat(33 * 1024)}\r\n`),
    head('GET /healthz', `Cookie: ${'x'.repeat(500_000)}\r\n`),
    head('GET /healthz', `${'X'.repeat(33 * 1024)}: value\r\n`),
    head('GET /healthz', many),
    head(`GET /${'a'.repeat(33 * 1024)}`),
    head(`GET /api/auth/callback?state=${'a'.repeat(33 * 1024)}`)
  ]
  for (const request of tooMuch) {
    const { answers, closedByServer } = await send(request + healthz)
    t.is(answers.length, 1)
    const [answer] = answers
    t.is(answer?.statusCode, 431)
    t.regex(answer?.head ?? '', /^connection: close$/im)
    t.regex(answer?.head ?? '', /^x-content-type-options: nosniff$/im)
    t.deepEqual(Object.keys(JSON.parse(String(answer?.body))), ['error', 'error_description'])
    t.true(closedByServer)
  }
  t.deepEqual(
    refusals(),
    tooMuch.map(() => 431)
  )
  noFault()
})

test('a GET or HEAD with a body is 413, and the body is not read as a request', async t => {
  const { send, noFault } = await start(t)
  const chunked = `${healthz.length.toString(16)}\r\n${healthz}\r\n0\r\n\r\n`
  for (const path of ['/', '/healthz', '/api/auth/login', '/api/auth/logout', '/nothing']) {
    for (const method of ['GET', 'HEAD']) {
      const isHead = method === 'HEAD'
      for (const request of [
        head(`${method} ${path}`, `Content-Length: ${healthz.length}\r\n`) + healthz,
        head(`${method} ${path}`, 'Transfer-Encoding: chunked\r\n') + chunked,
        head(`${method} ${path}`, 'Content-Length: 1000000\r\n'),
        head(`${method} ${path}`, 'Content-Length: 5\r\nExpect: 100-continue\r\n')
      ]) {
        const { answers, closedByServer } = await send(request + healthz, { head: isHead })
        t.deepEqual(
          answers.map(({ statusCode }) => statusCode).filter(status => status !== 100),
          [413],
          `${method} ${path}`
        )
        t.true(closedByServer)
        t.notRegex(answers[0]?.head ?? '', /^set-cookie:/im)
      }
    }
  }
  noFault()
})

test('a Content-Length of 0 is not a body', async t => {
  const { send } = await start(t)
  const { answers } = await send(head('GET /healthz', 'Content-Length: 0\r\nConnection: close\r\n'))
  t.is(answers[0]?.statusCode, 200)
})

test('the body of a refused method is skipped, and the connection stays usable', async t => {
  const { send } = await start(t)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const body = `${healthz}${healthz}`
    const whole = head(`${method} /api/auth/token`, `Content-Length: ${body.length}\r\n`) + body
    const chunked = `${head(`${method} /`, 'Transfer-Encoding: chunked\r\n')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const { answers } = await send(whole + chunked + head('GET /nothing', 'Connection: close\r\n'))
    t.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [405, 405, 404],
      method
    )
  }
})

// RFC 9112 section 11.2: two readings of where a request ends are how one client's bytes become another's request.
const ambiguous: Readonly<Record<string, string>> = {
  'a length and an encoding': 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n',
  'an encoding and a length': 'Transfer-Encoding: chunked\r\nContent-Length: 6\r\n',
  'two lengths': 'Content-Length: 0\r\nContent-Length: 30\r\n',
  'two lengths in one line': 'Content-Length: 0, 30\r\n',
  'a negative length': 'Content-Length: -1\r\n',
  'a signed length': 'Content-Length: +30\r\n',
  'a hexadecimal length': 'Content-Length: 0x1e\r\n',
  'a length with a space in it': 'Content-Length: 3 0\r\n',
  'a length beyond any number': 'Content-Length: 99999999999999999999999\r\n',
  'an empty length': 'Content-Length:\r\n',
  'a space before the colon': 'Transfer-Encoding : chunked\r\n',
  'a tab before the colon': 'Content-Length\t: 30\r\n',
  'an encoding that is none': 'Transfer-Encoding: xchunked\r\n',
  'an encoding twice': 'Transfer-Encoding: chunked, chunked\r\n',
  'an encoding that ends otherwise': 'Transfer-Encoding: chunked, identity\r\n',
  'an encoding hidden by a vertical tab': 'Transfer-Encoding: \vchunked\r\n',
  'a folded line': 'Transfer-Encoding:\r\n chunked\r\n',
  'a line without a colon': 'Transfer-Encoding chunked\r\n',
  'a bare CR': 'X-Header: a\rTransfer-Encoding: chunked\r\n',
  'a bare LF': 'X-Header: a\nTransfer-Encoding: chunked\r\n',
  'a NUL in a name': 'Trans\0fer-Encoding: chunked\r\n',
  'a NUL in a value': 'X-Header: a\0b\r\n',
  'a control character in a name': 'Content\x01-Length: 30\r\n'
}

for (const [name, line] of Object.entries(ambiguous)) {
  test(`${name}: refused, and nothing after it is read as a request`, async t => {
    const { send, browser, noFault } = await start(t)
    for (const method of ['GET', 'POST']) {
      const { answers, closedByServer } = await send(`${head(`${method} /`, line)}0\r\n\r\n${healthz}`)
      const statuses = answers.map(({ statusCode }) => statusCode)
      t.true(statuses.length === 1, `${method}: ${statuses}`)
      t.true([400, 413].includes(statuses[0] ?? 0), `${method}: ${statuses}`)
      t.true(closedByServer)
    }
    t.is((await browser.get('/healthz')).statusCode, 200)
    noFault()
  })
}

test('a request that is not HTTP/1 is refused', async t => {
  const { send, refusals } = await start(t)
  const requests = [
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'GET /healthz HTTP/3\r\n\r\n',
    'GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'GET\t/healthz\tHTTP/1.1\r\nHost: localhost\r\n\r\n',
    'G\xcbT /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'NONSENSE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'GET /healthz http/1.1\r\nHost: localhost\r\n\r\n',
    'GET /healthz HTTP/1.1\nHost: localhost\n\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'SSH-2.0-OpenSSH_9.9\r\n\r\n'
  ]
  for (const request of requests) {
    const { answers, closedByServer } = await send(request)
    t.is(answers[0]?.statusCode, 400, JSON.stringify(request))
    t.is(JSON.parse(String(answers[0]?.body)).error, 'invalid_request')
    t.is(answers.length, 1)
    t.true(closedByServer)
  }
  t.deepEqual(
    refusals(),
    requests.map(() => 400)
  )
})

test('an HTTP/1.1 request must name a host; one of HTTP/1.0 need not, and its connection ends', async t => {
  const { send } = await start(t)
  const nameless = await send('GET /healthz HTTP/1.1\r\n\r\n')
  t.deepEqual(
    nameless.answers.map(({ statusCode }) => statusCode),
    [400]
  )
  t.true(nameless.closedByServer)
  const old = await send('GET /healthz HTTP/1.0\r\n\r\n')
  t.deepEqual(
    old.answers.map(({ statusCode }) => statusCode),
    [200]
  )
  t.true(old.closedByServer)
})

test('requests sent all at once are answered in their order', async t => {
  const { send, browser, clock, idp } = await start(t)
  await signIn(browser)
  const cookie = cookieHeader(browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const slow = head('GET /api/auth/profile', `Cookie: ${cookie}\r\n`)
  const pipelined = send([slow, healthz, head('GET /nothing'), healthz, slow, lastHealthz].join(''))
  await hold.arrived()
  hold.release()
  const { answers } = await pipelined
  t.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 404, 200, 200, 200]
  )
  t.deepEqual(JSON.parse(String(answers[0]?.body)), { name: 'Ada Lovelace' })
  t.deepEqual(JSON.parse(String(answers[1]?.body)), { status: 'ok' })
})

// Node ends a connection whose client has closed its half, and the answer with it; what it was for must not be lost.
test('a client that closes its half while it waits loses the answer, and finds its result with the old cookie', async t => {
  const { send, browser, clock, idp } = await start(t)
  await signIn(browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const asked = send(head('GET /api/auth/profile', `Cookie: ${cookieHeader(browser)}\r\n`), { end: true })
  await hold.arrived()
  t.true((await asked).closedByServer)
  hold.release()
  await eventually(() => idp.issued.refreshTokens.length === 2)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is(idp.tokenRequests.length, 2)
  t.deepEqual(idp.reuses, [])
})

test('expectations, upgrades and tunnels are not supported and do no harm', async t => {
  const { send, browser } = await start(t)
  const expecting = await send(head('GET /healthz', 'Expect: 100-continue\r\nConnection: close\r\n'))
  t.is(expecting.answers.at(-1)?.statusCode, 200)
  const unheardOf = await send(head('GET /healthz', 'Expect: a-miracle\r\nConnection: close\r\n'))
  t.is(unheardOf.answers[0]?.statusCode, 417)
  for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
    const upgrade = `Upgrade: ${protocol}\r\nConnection: Upgrade, HTTP2-Settings\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n`
    const { answers } = await send(head('GET /healthz', upgrade), { answers: 1 })
    t.is(answers[0]?.statusCode, 200, protocol)
  }
  for (const target of ['localhost:80', '127.0.0.1:22', '/healthz']) {
    const tunnel = await send(head(`CONNECT ${target}`) + healthz)
    t.deepEqual(
      tunnel.answers.filter(({ statusCode }) => statusCode < 400),
      []
    )
    t.true(tunnel.closedByServer)
  }
  t.is((await browser.get('/healthz')).statusCode, 200)
})

test('a request that does not end in time is 408, and the connection ends', async t => {
  const limits = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 }
  const { send, refusals, noFault } = await start(t, { limits })
  const unfinished = ['GET', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Header: a', '']
  for (const piece of unfinished) {
    const { answers, closedByServer } = await send(piece)
    t.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [408],
      piece
    )
    t.regex(answers[0]?.head ?? '', /^connection: close$/im)
    t.deepEqual(Object.keys(JSON.parse(String(answers[0]?.body))), ['error', 'error_description'])
    t.true(closedByServer)
  }
  t.deepEqual(
    refusals(),
    unfinished.map(() => 408)
  )

  const slowBody = await send(head('POST /', 'Content-Length: 10\r\n'))
  t.is(slowBody.answers[0]?.statusCode, 405)
  t.true(slowBody.closedByServer)
  noFault()
})

test('a client that is refused and does not hang up is hung up on', async t => {
  const limits = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 }
  const { server } = await start(t, { limits })
  async function refuse(request: string, isPinging: boolean) {
    // Half-open: our side stays as it is when the server's FIN comes, so that only a cut ends the connection.
    const client = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
    client.on('error', () => {})
    client.resume()
    const closed = new Promise(resolve => client.on('close', resolve))
    client.write(request)
    await new Promise(resolve => client.on('end', resolve))
    // A cut is only noticed by writing.
    const pinging = setInterval(() => client.write('x'), isPinging ? 20 : 1200)
    await closed
    clearInterval(pinging)
    t.pass()
  }
  const tooLarge = head('GET /healthz', `Cookie: ${'x'.repeat(40_000)}\r\n`)
  const cases = ['NONSENSE\r\n\r\n', tooLarge, 'GET /'].flatMap(request => [
    refuse(request, true),
    refuse(request, false)
  ])
  t.plan(cases.length)
  await Promise.all(cases)
})

test('a connection is kept for longer than load balancers keep theirs', async t => {
  const { send } = await start(t)
  const { answers } = await send(healthz, { answers: 1 })
  const seconds = Number(/^keep-alive: timeout=(\d+)$/im.exec(answers[0]?.head ?? '')?.[1])
  t.true(seconds > 60)
})

// Long enough that a pause of a slow machine does not look like a client that has stopped reading.
const impatient = { unreadTimeout: 2000, connectionsCheckingInterval: 50 }
const tooLongMs = 4500

/** Asks and reads nothing of the answer until told to: then whatever still comes. */
function askWithoutReading(t: ExecutionContext, port: number, request: string) {
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {})
  t.teardown(() => client.destroy())
  client.write(request)
  return {
    async read() {
      const chunks: Buffer[] = []
      client.on('data', chunk => chunks.push(chunk))
      await once(client, 'close')
      return Buffer.concat(chunks)
    }
  }
}

test('a client that stops reading its answer loses the connection', async t => {
  const size = 20_000_000
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(size, 'A') })
  const { server, logs, noFault } = await start(t, { overrides: { wwwroot }, limits: impatient })
  const clients = [1, 2, 3].map(() => askWithoutReading(t, server.port, head('GET /large.bin')))
  const answers = () => logs.entries.filter(({ event }) => event === 'request')
  await eventually(() => answers().length === clients.length)
  t.like(answers()[0], { status: 200, aborted: true })
  for (const client of clients) t.true((await client.read()).length < size)
  noFault()
})

test('a client that waits for its response longer than the limit for unread responses is not cut off', async t => {
  const { browser, clock, idp } = await start(t, { limits: impatient })
  await signIn(browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const asked = browser.fetch('/api/auth/profile')
  await hold.arrived()
  await pause(tooLongMs)
  hold.release()
  t.is((await asked).statusCode, 200)
  t.is(idp.tokenRequests.length, 2)
})

test('a client that has read everything so far and waits for the next part is not cut off', async t => {
  const pieces = async function* () {
    yield Buffer.alloc(20_000_000, 'A')
    await pause(tooLongMs)
    yield 'the next'
  }
  const { server } = await start(t, {
    limits: impatient,
    parts: {
      extend(app) {
        app.use(ctx => {
          ctx.body = Readable.from(pieces(), { objectMode: false })
        })
      }
    }
  })
  const client = askWithoutReading(t, server.port, head('GET /own', 'Connection: close\r\n'))
  // Long enough to be noticed.
  await pause(300)
  t.regex((await client.read()).toString('latin1').slice(-100), /the next\r\n0\r\n\r\n$/)
})

test('an idle connection that is kept for the next request is not cut off', async t => {
  const { server } = await start(t, { limits: impatient })
  const client = connect({ port: server.port, host: '127.0.0.1' })
  t.teardown(() => client.destroy())
  client.write(healthz)
  await once(client, 'data')
  await pause(tooLongMs)
  t.false(client.destroyed)
})

test('a timeout that a program has set on its connection is not changed', async t => {
  let socket: Socket | undefined
  const { server } = await start(t, {
    limits: impatient,
    parts: {
      extend(app) {
        app.use(ctx => {
          socket = ctx.req.socket.setTimeout(60_000)
          ctx.body = Buffer.alloc(20_000_000, 'A')
        })
      }
    }
  })
  const client = askWithoutReading(t, server.port, head('GET /own', 'Connection: close\r\n'))
  await eventually(() => (socket?.writableLength ?? 0) > 0)
  // Several looks at it, with something unsent and with nothing.
  await pause(300)
  t.is(socket?.timeout, 60_000)
  await client.read()
})

test('a malformed request is answered after the response before it, not in the middle of it', async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(20_000_000, 'A') })
  const { server } = await start(t, { overrides: { wwwroot } })
  const client = connect({ port: server.port, host: '127.0.0.1' })
  client.on('error', () => {})
  client.write(head('GET /large.bin'))
  await once(client, 'readable')
  client.write('NONSENSE\r\n\r\n')
  // The server is in the middle of the file when the malformed request arrives, because the client does not read.
  await pause(50)
  const chunks: Buffer[] = []
  client.on('data', chunk => chunks.push(chunk))
  await once(client, 'close')
  const received = Buffer.concat(chunks).toString('latin1')
  t.true(received.startsWith('HTTP/1.1 200 OK'))
  const body = received.indexOf('\r\n\r\n') + 4
  t.true(received.slice(body, body + 20_000_000) === 'A'.repeat(20_000_000))
  t.regex(received.slice(body + 20_000_000), /^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/)
})

test('a malformed request does not overtake a response that has not begun', async t => {
  const { send, browser, clock, idp, refusals } = await start(t)
  await signIn(browser)
  const cookie = cookieHeader(browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const profile = head('GET /api/auth/profile', `Cookie: ${cookie}\r\n`)
  const pipelined = send([profile, healthz, 'NONSENSE\r\n\r\n', 'MORE NONSENSE\r\n\r\n'])
  await hold.arrived()
  await eventually(() => refusals().length > 0)
  hold.release()
  const { answers, closedByServer } = await pipelined
  t.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 400]
  )
  t.deepEqual(JSON.parse(String(answers[0]?.body)), { name: 'Ada Lovelace' })
  t.true(closedByServer)
  t.deepEqual(refusals(), [400])
})

test('a malformed body of a pipelined request is answered in its turn, in place of the request', async t => {
  const { send, browser, clock, idp, refusals } = await start(t)
  await signIn(browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const profile = head('GET /api/auth/profile', `Cookie: ${cookieHeader(browser)}\r\n`)
  const malformed = `${head('POST /nothing', 'Transfer-Encoding: chunked\r\n')}not a length\r\n`
  const pipelined = send(profile + malformed)
  await hold.arrived()
  await eventually(() => refusals().length > 0)
  hold.release()
  const { answers, closedByServer } = await pipelined
  t.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 400]
  )
  t.true(closedByServer)
})

test('a request waits for its turn before its handler starts, and is dropped if its client disconnects', async t => {
  const started: string[] = []
  let answerFirst = () => {}
  const { server } = await start(t, {
    parts: {
      extend(app) {
        app.use(async ctx => {
          started.push(ctx.path)
          if (ctx.path === '/own/1') await new Promise<void>(resolve => (answerFirst = resolve))
          ctx.body = ctx.path
        })
      }
    }
  })
  const pipeline = () => {
    const client = connect({ port: server.port, host: '127.0.0.1' })
    t.teardown(() => client.destroy())
    client.write([1, 2, 3].map(number => head(`GET /own/${number}`)).join(''))
    return client
  }
  const leaving = pipeline()
  await eventually(() => started.length === 1)
  leaving.destroy()
  // A later connection shows that the server has had the time to start more.
  await sendRaw(server.port, healthz, { answers: 1 })
  answerFirst()
  await sendRaw(server.port, healthz, { answers: 1 })
  t.deepEqual(started, ['/own/1'])

  const staying = pipeline()
  await eventually(() => started.length === 2)
  answerFirst()
  await eventually(() => started.length === 4)
  t.deepEqual(started, ['/own/1', '/own/1', '/own/2', '/own/3'])
  staying.destroy()
})

test('a connection with more than sixteen waiting requests is closed', async t => {
  const { send, logs, noFault } = await start(t)
  const few = await send(healthz.repeat(16) + lastHealthz)
  t.deepEqual(
    few.answers.map(({ statusCode }) => statusCode),
    Array.from({ length: 17 }, () => 200)
  )
  const many = await send(healthz.repeat(1000))
  t.true(many.closedByServer)
  t.true(many.answers.length < 17)
  t.is(logs.entries.filter(({ code }) => code === 'TOO_MANY_PIPELINED').length, 1)
  noFault()
})

test('a request with two Host headers is 400, and its connection ends', async t => {
  const { send } = await start(t)
  for (const second of ['Host: localhost', 'host: elsewhere.example', 'HOST:']) {
    const { answers, closedByServer } = await send(head('GET /healthz', `${second}\r\n`) + healthz)
    t.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [400],
      second
    )
    t.true(closedByServer)
  }
})

test('a missing host and an unknown expectation are answered like every other error', async t => {
  const { send } = await start(t)
  const requests: readonly (readonly [request: string, status: number])[] = [
    ['GET /healthz HTTP/1.1\r\n\r\n', 400],
    [head('GET /healthz', 'Expect: a-miracle\r\n'), 417],
    [head('POST /healthz', 'Expect: a-miracle\r\nContent-Length: 5\r\n'), 417]
  ]
  for (const [request, status] of requests) {
    const { answers, closedByServer } = await send(request)
    t.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [status]
    )
    t.regex(answers[0]?.head ?? '', /^x-content-type-options: nosniff$/im)
    t.is(JSON.parse(String(answers[0]?.body)).error, 'invalid_request')
    t.true(closedByServer)
  }
})
