// The limits of the HTTP server for sizes, framing and time. These tests use raw sockets, because HTTP clients cannot send
// most of these requests.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { assertCases } from '../../helpers/case-file.js'
import { eventually } from '../../helpers/eventually.js'
import { sendRaw } from '../../helpers/raw.js'
import { signIn, startTestServer, type TestServerOptions } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { handledBy, sessionHeader, statusesOf, warningIn } from '../support.js'

/** A request line with a Host header. `more` contains further complete header lines. */
function head(start: string, more = ''): string {
  return `${start} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
}

const healthz = head('GET /healthz')
const lastHealthz = head('GET /healthz', 'Connection: close\r\n')

async function start(t: ExecutionContext, options: TestServerOptions = {}) {
  const started = await startTestServer(t, options)
  const send = (pieces: string | readonly string[], more: Parameters<typeof sendRaw>[2] = {}) =>
    sendRaw(started.server.port, pieces, more)
  const refusals = () => started.logs.all('client_error').map(({ status }) => status)
  const noFault = () => t.is(warningIn(started.logs), undefined)
  return { ...started, send, refusals, noFault }
}

test('thirty KiB of cookies are accepted, and a request with more than 32 KiB of headers gets 431 with the usual JSON body, and is logged', async t => {
  const { send, browser, refusals, noFault } = await start(t)
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
    t.deepEqual(Object.keys(JSON.parse(String(answer?.body))), ['error', 'error_description', 'request_id'])
    t.true(closedByServer)
  }
  t.deepEqual(refusals(), Array(tooMuch.length).fill(431))
  noFault()

  await signIn(browser)
  const session = sessionHeader(browser)
  const others = Array.from({ length: 8 }, (_, index) => `other${index}=${'x'.repeat(3900)}`).join('; ')
  const cookie = `${others.slice(0, 30 * 1024 - session.length)}; ${session}`
  t.true(cookie.length >= 30 * 1024)
  t.is((await browser.get('/api/auth/profile', { headers: { cookie } })).statusCode, 200)
  t.is((await browser.get('/', { headers: { cookie } })).statusCode, 200)
})

test('a GET or HEAD request with a body gets 413, and its body is not read as a request', async t => {
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
        const statuses = statusesOf(answers).filter(status => status !== 100)
        t.deepEqual(statuses, [413], `${method} ${path}`)
        t.true(closedByServer)
        t.notRegex(answers[0]?.head ?? '', /^set-cookie:/im)
        if (!isHead) t.is(JSON.parse(String(answers.at(-1)?.body)).error, 'content_too_large')
      }
    }
  }
  const empty = await send(head('GET /healthz', 'Content-Length: 0\r\nConnection: close\r\n'))
  t.is(empty.answers[0]?.statusCode, 200, 'a length of 0 is no body')
  noFault()
})

test('the body of a request with an unsupported method is skipped, and the connection can be used again', async t => {
  const { send } = await start(t)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const body = `${healthz}${healthz}`
    const whole = head(`${method} /api/auth/token`, `Content-Length: ${body.length}\r\n`) + body
    const chunked = `${head(`${method} /`, 'Transfer-Encoding: chunked\r\n')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const { answers } = await send(whole + chunked + head('GET /nothing', 'Connection: close\r\n'))
    t.deepEqual(statusesOf(answers), [405, 405, 404], method)
  }
})

// RFC 9112 section 11.2: if two parties disagree on the end of a request, the bytes of one client can become a request of
// another.
test('a request with ambiguous framing, that is not valid HTTP/1 or that lacks a Host header is rejected, and the bytes after it are not read as a request', async t => {
  const { send, browser, refusals, noFault } = await start(t)
  await assertCases(t, 'test/web/every-request/raw-requests.txt', async text => {
    const lines = JSON.parse(`"${text}"`).replaceAll(' | ', '\r\n') as string
    const { answers, closedByServer } = await send(`${lines}\r\n\r\n0\r\n\r\n${healthz}`)
    t.true(closedByServer, text)
    for (const answer of answers) {
      t.regex(answer.head, /^x-content-type-options: nosniff$/im)
      t.regex(JSON.parse(String(answer.body)).error, /^(invalid_request|content_too_large)$/)
    }
    return statusesOf(answers).join(' ')
  })
  t.true(new Set(refusals()).size === 1 && refusals().includes(400))
  t.is((await browser.get('/healthz')).statusCode, 200)
  noFault()
  const old = await send('GET /healthz HTTP/1.0\r\n\r\n')
  t.deepEqual([statusesOf(old.answers), old.closedByServer], [[200], true])
})

test('Expect, Upgrade and CONNECT requests get responses without a change of protocol, and the server continues to work', async t => {
  const { send, browser } = await start(t)
  const expecting = await send(head('GET /healthz', 'Expect: 100-continue\r\nConnection: close\r\n'))
  t.is(expecting.answers.at(-1)?.statusCode, 200)
  for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
    const upgrade = `Upgrade: ${protocol}\r\nConnection: Upgrade, HTTP2-Settings\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n`
    const { answers } = await send(head('GET /healthz', upgrade), { answers: 1 })
    t.is(answers[0]?.statusCode, 200, protocol)
  }
  for (const target of ['localhost:80', '127.0.0.1:22', '/healthz']) {
    const tunnel = await send(head(`CONNECT ${target}`) + healthz)
    const accepted = tunnel.answers.filter(({ statusCode }) => statusCode < 400)
    t.deepEqual(accepted, [])
    t.true(tunnel.closedByServer)
  }
  t.is((await browser.get('/healthz')).statusCode, 200)
})

test('a request that is not complete in time gets 408, and the connection is closed', async t => {
  const limits = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 }
  const { send, refusals, noFault } = await start(t, { limits })
  const unfinished = ['GET', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Header: a', '']
  for (const piece of unfinished) {
    const { answers, closedByServer } = await send(piece)
    t.deepEqual(statusesOf(answers), [408], piece)
    t.regex(answers[0]?.head ?? '', /^connection: close$/im)
    t.deepEqual(Object.keys(JSON.parse(String(answers[0]?.body))), ['error', 'error_description', 'request_id'])
    t.true(closedByServer)
  }
  t.deepEqual(refusals(), Array(unfinished.length).fill(408))

  const slowBody = await send(head('POST /', 'Content-Length: 10\r\n'))
  t.is(slowBody.answers[0]?.statusCode, 405)
  t.true(slowBody.closedByServer)
  noFault()
})

test('if a client does not close its connection after a rejected request, the server closes it', async t => {
  const limits = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 }
  const { server } = await start(t, { limits })
  async function refuse(request: string, isPinging: boolean) {
    // The client stays open after the server has closed its side, so the connection ends only when the server destroys it.
    const client = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
    client.on('error', () => {})
    client.resume()
    const closed = new Promise(resolve => client.on('close', resolve))
    client.write(request)
    await new Promise(resolve => client.on('end', resolve))
    // The client notices the closed connection only when it writes.
    const pinging = setInterval(() => client.write('x'), isPinging ? 20 : 1200)
    await closed
    clearInterval(pinging)
    t.pass()
  }
  const tooLarge = head('GET /healthz', `Cookie: ${'x'.repeat(40_000)}\r\n`)
  const requests = ['NONSENSE\r\n\r\n', tooLarge, 'GET /']
  const cases = requests.flatMap(request => [refuse(request, true), refuse(request, false)])
  t.plan(cases.length)
  await Promise.all(cases)
})

// These limits are long enough that a pause of a slow machine does not look like a client that has stopped reading.
const impatient = { unreadTimeout: 2000, connectionsCheckingInterval: 50 }
const tooLongMs = 4500

/** Sends a request and reads nothing until `read` is called, which returns all bytes that then arrive. */
function askWithoutReading(t: ExecutionContext, port: number, request: string) {
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {})
  t.teardown(() => client.destroy())
  client.write(request)
  async function read() {
    const chunks: Buffer[] = []
    client.on('data', chunk => chunks.push(chunk))
    await once(client, 'close')
    return Buffer.concat(chunks)
  }
  return { client, read }
}

test('a client that stops reading a response is disconnected', async t => {
  const size = 20_000_000
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(size, 'A') })
  const { server, logs, noFault } = await start(t, { settings: { wwwroot }, limits: impatient })
  const clients = [1, 2, 3].map(() => askWithoutReading(t, server.port, head('GET /large.bin')))
  const answers = () => logs.all('request')
  await eventually(() => answers().length === clients.length)
  t.like(answers()[0], { status: 200, aborted: true })
  for (const client of clients) t.true((await client.read()).length < size)
  noFault()
})

test('a client that waits for the start of its response for longer than unreadTimeout, or for its next request, is not disconnected', async t => {
  const { browser, clock, idp, server } = await start(t, { limits: impatient })
  await signIn(browser)
  const idle = connect({ port: server.port, host: '127.0.0.1' })
  t.teardown(() => idle.destroy())
  idle.write(healthz)
  await once(idle, 'data')
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const asked = browser.fetch('/api/auth/profile')
  await hold.arrived()
  await pause(tooLongMs)
  t.false(idle.destroyed)
  hold.release()
  t.is((await asked).statusCode, 200)
  t.is(idp.tokenRequests.length, 2)
})

test('a client that has read all bytes and waits for the next part of the response is not disconnected', async t => {
  const pieces = async function* () {
    yield Buffer.alloc(20_000_000, 'A')
    await pause(tooLongMs)
    yield 'the next'
  }
  const parts = handledBy(ctx => {
    ctx.body = Readable.from(pieces(), { objectMode: false })
  })
  const { server } = await start(t, { limits: impatient, parts })
  const client = askWithoutReading(t, server.port, head('GET /own', 'Connection: close\r\n'))
  // The server has enough time to see that the client does not read.
  await pause(300)
  t.regex((await client.read()).toString('latin1').slice(-100), /the next\r\n0\r\n\r\n$/)
})

test('a socket timeout that an application has set is not changed', async t => {
  let socket: Socket | undefined
  const parts = handledBy(ctx => {
    socket = ctx.req.socket.setTimeout(60_000)
    ctx.body = Buffer.alloc(20_000_000, 'A')
  })
  const { server } = await start(t, { limits: impatient, parts })
  const client = askWithoutReading(t, server.port, head('GET /own', 'Connection: close\r\n'))
  await eventually(() => (socket?.writableLength ?? 0) > 0)
  // The server checks the connection several times in this pause, while bytes are still unsent.
  await pause(300)
  t.is(socket?.timeout, 60_000)
  await client.read()
})

const afterSlowRequest: readonly (readonly [what: string, rest: readonly string[], statuses: readonly number[]])[] = [
  [
    'a malformed request',
    [healthz, head('GET /nothing'), healthz, 'NONSENSE\r\n\r\n', 'MORE NONSENSE\r\n\r\n'],
    [200, 200, 404, 200, 400]
  ],
  ['a malformed body', [`${head('POST /nothing', 'Transfer-Encoding: chunked\r\n')}not a length\r\n`], [200, 400]]
]

for (const [what, rest, statuses] of afterSlowRequest) {
  test(`${what} that follows a slow request gets its response after that of the slow request`, async t => {
    const { send, browser, clock, idp, refusals } = await start(t)
    await signIn(browser)
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const profile = head('GET /api/auth/profile', `Cookie: ${sessionHeader(browser)}\r\n`)
    const pipelined = send([profile, ...rest])
    await hold.arrived()
    await eventually(() => refusals().length > 0)
    hold.release()
    const { answers, closedByServer } = await pipelined
    t.deepEqual(statusesOf(answers), statuses)
    t.deepEqual(JSON.parse(String(answers[0]?.body)), { name: 'Ada Lovelace' })
    t.true(closedByServer)
    t.deepEqual(refusals(), [400])
  })
}

test('the handler of a pipelined request starts when the earlier responses have been sent, and never if the client disconnects', async t => {
  const started: string[] = []
  let answerFirst = () => {}
  const { server } = await start(t, {
    parts: handledBy(async ctx => {
      started.push(ctx.path)
      if (ctx.path === '/own/1') await new Promise<void>(resolve => (answerFirst = resolve))
      ctx.body = ctx.path
    })
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
  // The response on another connection shows that the server had time to start more handlers.
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

test('a connection is kept for longer than a minute, which is longer than load balancers keep theirs, and closed if more than sixteen requests wait', async t => {
  const { send, logs, noFault } = await start(t)
  const few = await send(healthz.repeat(16) + lastHealthz)
  t.deepEqual(statusesOf(few.answers), Array(17).fill(200))
  const many = await send(healthz.repeat(1000))
  t.true(many.closedByServer)
  t.true(many.answers.length < 17)
  t.is(logs.entries.filter(({ reason }) => reason === 'too_many_pipelined').length, 1)
  noFault()
  const { answers } = await send(healthz, { answers: 1 })
  const seconds = Number(/^keep-alive: timeout=(\d+)$/im.exec(answers[0]?.head ?? '')?.[1])
  t.true(seconds > 60)
})
