// Streaming through the proxy: backpressure works in both directions, and an aborted body is aborted on the other side too.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { startRawUpstream, startUpstream } from '../helpers/upstream.js'
import { answerOf, ask, open, startBehind } from './clients.js'

const MIB = 1024 * 1024

async function bodyOf(response: IncomingMessage): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
  } catch {
    // The response was cut.
  }
  return { text: String(Buffer.concat(chunks)), isWhole: response.complete }
}

/** Writes up to `length` bytes, as fast as `to` takes them. Returns how many bytes it has taken so far. */
function pour(to: Writable, length: number): () => number {
  let written = 0
  const write = () => {
    while (written < length) {
      written += 64 * 1024
      if (!to.write(Buffer.alloc(64 * 1024))) return void to.once('drain', write)
    }
    to.end()
  }
  write()
  return () => written
}

/** Opens a connection to the server, and collects the text that it receives. */
function openSocket(t: ExecutionContext, port: number) {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const received = { socket, text: '', error: undefined as NodeJS.ErrnoException | undefined }
  socket.on('data', chunk => {
    received.text += chunk.toString('latin1')
  })
  socket.on('error', error => {
    received.error = error
  })
  return received
}

test('the head and each event of an event stream are passed on immediately', async t => {
  let stream: ServerResponse | undefined
  const starting = startUpstream(t, (_request, response) => {
    stream = response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
  })
  const response = await answerOf(ask(t, await startBehind(t, starting)))
  t.is(response.statusCode, 200)
  for (const event of ['data: one\n\n', 'data: two\n\n']) {
    stream?.write(event)
    const [chunk] = await once(response, 'data')
    t.is(String(chunk), event)
  }
  stream?.end('data: last\n\n')
  t.deepEqual(await bodyOf(response), { text: 'data: last\n\n', isWhole: true })
})

/** Waits until no more bytes are taken, and asserts that the proxy has stopped before they fill its memory. */
async function assertStopped(t: ExecutionContext, taken: () => number) {
  let before = -1
  await eventually(() => {
    const isStill = taken() === before
    before = taken()
    return isStill && before > 0
  })
  await pause(200)
  t.true(taken() < 30 * MIB, `${taken()} bytes were taken`)
}

test('if a client reads slowly, the proxy stops reading from the upstream instead of filling its memory', async t => {
  let taken = () => 0
  const starting = startUpstream(t, (_request, response) => {
    taken = pour(response, 200 * MIB)
  })
  const response = await answerOf(ask(t, await startBehind(t, starting)))
  response.pause()
  await assertStopped(t, () => taken())
  let read = 0
  for await (const chunk of response) read += (chunk as Buffer).length
  t.is(read, 200 * MIB)
})

test('if an upstream reads slowly, the proxy stops reading from the client', async t => {
  const starting = startUpstream(t, request => request.removeAllListeners('data').pause())
  const proxied = await startBehind(t, starting)
  const request = open(t, proxied, { method: 'POST', headers: { 'Content-Length': String(60 * MIB) } })
  const taken = pour(request, 60 * MIB)
  await eventually(() => proxied.upstream.requests.length === 1)
  await assertStopped(t, taken)
})

for (const when of ['before the head', 'within the response', 'within the upload'] as const) {
  test(`if a client disconnects ${when}, the request to the upstream is aborted`, async t => {
    const starting = startUpstream(t, (_request, response) => {
      if (when === 'within the response') response.write('begun')
    })
    const proxied = await startBehind(t, starting)
    const upload = { method: 'POST', headers: { 'Content-Length': '1000' } }
    const request = when === 'within the upload' ? open(t, proxied, upload) : ask(t, proxied)
    if (when === 'within the upload') request.write('begun')
    await eventually(() => proxied.upstream.requests.length === 1)
    if (when === 'within the response') await answerOf(request)
    request.destroy()
    await proxied.upstream.requests[0]?.aborted
    t.is((await proxied.browser.get('/api/auth/profile')).statusCode, 200)
  })
}

const inChunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n'
const cuts: readonly (readonly [what: string, head: string, version: string])[] = [
  ['with a Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun', '1.1'],
  ['in chunks', inChunks, '1.1'],
  ['in chunks, for a client of HTTP/1.0', inChunks, '1.0']
]
for (const [what, head, version] of cuts) {
  for (const how of ['end', 'resetAndDestroy'] as const) {
    test(`if the upstream cuts a response ${what} by ${how}, the client sees that the response is incomplete`, async t => {
      let upstreamSocket: Socket | undefined
      const starting = startRawUpstream(t, socket => {
        upstreamSocket = socket
        socket.write(head)
      })
      const { server, cookie, logs } = await startBehind(t, starting)
      const received = openSocket(t, server.port)
      received.socket.write(`GET /api/x HTTP/${version}\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`)
      await eventually(() => received.text.includes('begun'))
      upstreamSocket?.[how]()
      await eventually(() => received.socket.closed)
      t.notRegex(received.text, /\r\n0\r\n/)
      t.is(received.error?.code, version === '1.0' ? 'ECONNRESET' : undefined)
      t.truthy(logs.first('upstream_response_incomplete'))
    })
  }
}

test('a response that comes before the end of an upload reaches the client, and the connection can be used again', async t => {
  const starting = startUpstream(t, (_request, response) => void response.writeHead(409).end('too early'))
  const { server, cookie, upstream } = await startBehind(t, starting)
  const received = openSocket(t, server.port)
  const body = 10 * MIB
  const fields = `Host: localhost\r\nCookie: ${cookie}\r\nSec-Fetch-Site: same-origin\r\n`
  received.socket.write(`POST /api/x HTTP/1.1\r\n${fields}Content-Length: ${body}\r\n\r\n`)
  received.socket.write(Buffer.alloc(1000))
  await eventually(() => received.text.includes('too early'))
  t.regex(received.text, /^HTTP\/1\.1 409/)
  received.text = ''
  received.socket.write(Buffer.alloc(body - 1000))
  received.socket.write(`GET /api/x HTTP/1.1\r\n${fields}\r\n`)
  await eventually(() => received.text.includes('too early'))
  t.is(upstream.requests.at(-1)?.method, 'GET')
})

test('a body above the size limit gets 413, with a Content-Length or in chunks', async t => {
  const starting = startUpstream(t, (request, response) => {
    request.resume().on('end', () => response.end('ok'))
  })
  const proxied = await startBehind(t, starting, { maxBody: 1000 })
  const { requests } = proxied.upstream
  const exact = open(t, proxied, { method: 'POST' }).end(Buffer.alloc(1000))
  t.is((await answerOf(exact)).statusCode, 200)
  const announced = open(t, proxied, { method: 'POST', headers: { 'Content-Length': '1001' } })
  announced.flushHeaders()
  t.is((await answerOf(announced)).statusCode, 413)
  t.is(requests.length, 1)
  const chunked = open(t, proxied, { method: 'POST', headers: { 'Transfer-Encoding': 'chunked' } })
  chunked.write(Buffer.alloc(600))
  await eventually(() => requests.length === 2)
  chunked.write(Buffer.alloc(600))
  const refused = await answerOf(chunked)
  t.deepEqual([refused.statusCode, refused.headers.connection], [413, 'close'])
  await t.throwsAsync(async () => requests[1]?.body())
})

test('an upstream that does not begin its response in time becomes 504', async t => {
  const { browser, logs, upstream } = await startBehind(
    t,
    startUpstream(t, () => {}),
    { options: 'timeout=1' }
  )
  const response = await browser.get('/api/x')
  t.deepEqual([response.statusCode, response.json().error], [504, 'upstream_timeout'])
  await upstream.requests[0]?.aborted
  const line = logs.find(({ event, path }) => event === 'request' && path === '/api/x')
  t.true(Number(line?.upstream_header_ms) >= 900)
})

test('a response in which the upstream pauses for too long is cut, and one with short pauses is not', async t => {
  const starting = startUpstream(t, async (request, response) => {
    response.write('begun')
    if (request.url === '/silent') return
    for (let dots = 0; dots < 5; dots += 1) {
      await pause(300)
      response.write('.')
    }
    response.end()
  })
  const proxied = await startBehind(t, starting, { options: 'timeout=1' })
  const paths = ['/api/silent', '/api/talking']
  const bodies = await Promise.all(paths.map(async path => bodyOf(await answerOf(ask(t, proxied, { path })))))
  t.deepEqual(bodies, [
    { text: 'begun', isWhole: false },
    { text: 'begun.....', isWhole: true }
  ])
})

test('an upstream that does not read the request body becomes 504', async t => {
  const starting = startRawUpstream(t, socket => socket.pause())
  const proxied = await startBehind(t, starting, { options: 'timeout=1' })
  const request = open(t, proxied, { method: 'POST', headers: { 'Content-Length': String(60 * MIB) } })
  request.write(Buffer.alloc(60 * MIB))
  t.is((await answerOf(request)).statusCode, 504)
})

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const resend: readonly (readonly [what: string, method: string, bytes: string, connections: readonly number[]])[] = [
  ['a GET request that fails on a reused connection is sent once more, on a new connection', 'GET', '', [1, 1, 2]],
  ['a request with an unsafe method is not sent again', 'POST', '', [1, 1]],
  ['a request whose response has begun is not sent again', 'GET', 'HTTP/1.1 2', [1, 1]]
]
for (const [what, method, bytes, connections] of resend) {
  test(what, async t => {
    const seen: number[] = []
    const starting = startRawUpstream(t, (socket, _text, connection) => {
      seen.push(connection)
      if (seen.length !== 2) socket.write(ok)
      else if (bytes === '') socket.resetAndDestroy()
      else socket.end(bytes)
    })
    const { browser } = await startBehind(t, starting)
    t.is((await browser.get('/api/x')).statusCode, 200)
    const response = await browser.request(method, '/api/x', { headers: { 'Sec-Fetch-Site': 'same-origin' } })
    t.is(response.statusCode, connections.length === 3 ? 200 : 502)
    t.deepEqual(seen, connections)
  })
}
