// Streaming through the proxy: backpressure works in both directions, and an aborted body is aborted on the other side too.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import test from 'ava'
import { eventually } from '../helpers/eventually.js'
import { startProxy, startRawUpstream, startUpstream } from '../helpers/upstream.js'
import { answerOf, ask, open } from './clients.js'

const MIB = 1024 * 1024

async function bodyOf(response: IncomingMessage): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return { text: String(Buffer.concat(chunks)), isWhole: response.complete }
  } catch {
    return { text: String(Buffer.concat(chunks)), isWhole: false }
  }
}

test('the head and each event of an event stream are passed on immediately', async t => {
  let stream: ServerResponse | undefined
  const upstream = await startUpstream(t, (_request, response) => {
    stream = response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
  })
  const proxied = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const response = await answerOf(ask(t, proxied))
  t.is(response.statusCode, 200)
  for (const event of ['data: one\n\n', 'data: two\n\n']) {
    stream?.write(event)
    const [chunk] = await once(response, 'data')
    t.is(String(chunk), event)
  }
  stream?.end('data: last\n\n')
  t.deepEqual(await bodyOf(response), { text: 'data: last\n\n', isWhole: true })
})

test('if a client reads slowly, the proxy stops reading from the upstream instead of filling its memory', async t => {
  let written = 0
  const upstream = await startUpstream(t, (_request, response) => {
    const chunk = Buffer.alloc(64 * 1024)
    const write = () => {
      while (written < 200 * MIB) {
        written += chunk.length
        if (!response.write(chunk)) {
          response.once('drain', write)
          return
        }
      }
      response.end()
    }
    write()
  })
  const proxied = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const response = await answerOf(ask(t, proxied))
  response.pause()
  let before = -1
  await eventually(() => {
    const isStill = written === before
    before = written
    return isStill && written > 0
  })
  await pause(200)
  t.true(written < 30 * MIB, `${written} bytes were taken from the upstream`)
  let read = 0
  for await (const chunk of response) read += (chunk as Buffer).length
  t.is(read, 200 * MIB)
})

test('if an upstream reads slowly, the proxy stops reading from the client', async t => {
  const upstream = await startUpstream(t, request => request.removeAllListeners('data').pause())
  const proxied = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x`] })
  const request = open(t, proxied, { method: 'POST', headers: { 'Content-Length': String(60 * MIB) } })
  let written = 0
  const chunk = Buffer.alloc(64 * 1024)
  const write = () => {
    while (written < 60 * MIB) {
      written += chunk.length
      if (!request.write(chunk)) {
        request.once('drain', write)
        return
      }
    }
  }
  write()
  await eventually(() => upstream.requests.length === 1)
  let before = -1
  await eventually(() => {
    const isStill = written === before
    before = written
    return isStill
  })
  await pause(200)
  t.true(written < 30 * MIB, `${written} bytes were taken from the client`)
  request.destroy()
})

for (const when of ['before the head', 'within the response', 'within the upload'] as const) {
  test(`if a client disconnects ${when}, the request to the upstream is aborted`, async t => {
    const upstream = await startUpstream(t, (_request, response) => {
      if (when === 'within the response') response.write('begun')
    })
    const proxied = await startProxy(t, { rules: [`GET,POST /api/x ${upstream.origin}/x`] })
    const upload = { method: 'POST', headers: { 'Content-Length': '1000' } }
    const request = when === 'within the upload' ? open(t, proxied, upload) : ask(t, proxied)
    if (when === 'within the upload') request.write('begun')
    await eventually(() => upstream.requests.length === 1)
    if (when === 'within the response') await answerOf(request)
    request.destroy()
    await upstream.requests[0]?.aborted
    t.is((await proxied.browser.get('/api/auth/profile')).statusCode, 200)
  })
}

const cuts: readonly (readonly [what: string, head: string, version: string])[] = [
  ['with a Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun', '1.1'],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n', '1.1'],
  ['in chunks, for a client of HTTP/1.0', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n', '1.0']
]
for (const [what, head, version] of cuts) {
  for (const how of ['end', 'resetAndDestroy'] as const) {
    test(`if the upstream cuts a response ${what} by ${how}, the client sees that the response is incomplete`, async t => {
      let upstreamSocket: Socket | undefined
      const upstream = await startRawUpstream(t, socket => {
        upstreamSocket = socket
        socket.write(head)
      })
      const { server, cookie, logs } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
      const socket = connect(server.port, '127.0.0.1')
      let text = ''
      let error: NodeJS.ErrnoException | undefined
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
      })
      socket.on('error', found => {
        error = found
      })
      socket.write(`GET /api/x HTTP/${version}\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`)
      await eventually(() => text.includes('begun'))
      upstreamSocket?.[how]()
      await eventually(() => socket.closed)
      t.notRegex(text, /\r\n0\r\n/)
      t.true(text.includes('100\r\n') || text.includes('chunked') || error?.code === 'ECONNRESET')
      t.truthy(logs.first('upstream_response_incomplete'))
    })
  }
}

test('a response that comes before the end of an upload reaches the client, and the connection can be used again', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.writeHead(409, { 'Content-Type': 'text/plain' })
    response.end('too early')
  })
  const { server, cookie } = await startProxy(t, { rules: [`POST,GET /api/x ${upstream.origin}/x`] })
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.on('data', chunk => {
    text += chunk.toString('latin1')
  })
  const body = 10 * MIB
  const fields = `Host: localhost\r\nCookie: ${cookie}\r\nSec-Fetch-Site: same-origin\r\n`
  socket.write(`POST /api/x HTTP/1.1\r\n${fields}Content-Length: ${body}\r\n\r\n`)
  socket.write(Buffer.alloc(1000))
  await eventually(() => text.includes('too early'))
  t.regex(text, /^HTTP\/1\.1 409/)
  text = ''
  socket.write(Buffer.alloc(body - 1000))
  socket.write(`GET /api/x HTTP/1.1\r\n${fields}\r\n`)
  await eventually(() => text.includes('too early'))
  t.is(upstream.requests.at(-1)?.method, 'GET')
  socket.destroy()
})

test('a body above the size limit gets 413, with a Content-Length or in chunks', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    request.resume().on('end', () => response.end('ok'))
  })
  const proxied = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x`], maxBody: 1000 })
  const exact = open(t, proxied, { method: 'POST' }).end(Buffer.alloc(1000))
  t.is((await answerOf(exact)).statusCode, 200)
  const announced = open(t, proxied, { method: 'POST', headers: { 'Content-Length': '1001' } })
  announced.flushHeaders()
  t.is((await answerOf(announced)).statusCode, 413)
  t.is(upstream.requests.length, 1)
  const chunked = open(t, proxied, { method: 'POST', headers: { 'Transfer-Encoding': 'chunked' } })
  chunked.write(Buffer.alloc(600))
  await eventually(() => upstream.requests.length === 2)
  chunked.write(Buffer.alloc(600))
  const refused = await answerOf(chunked)
  t.is(refused.statusCode, 413)
  t.is(refused.headers.connection, 'close')
  await t.throwsAsync(async () => upstream.requests[1]?.body())
})

test('an upstream that does not begin its response in time becomes 504', async t => {
  const upstream = await startUpstream(t, () => {})
  const { browser, logs } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x timeout=1`] })
  const response = await browser.get('/api/x')
  t.is(response.statusCode, 504)
  t.is(response.json().error, 'upstream_timeout')
  await upstream.requests[0]?.aborted
  const line = logs.find(({ event, path }) => event === 'request' && path === '/api/x')
  t.true(Number(line?.upstream_header_ms) >= 900)
})

test('a response in which the upstream pauses for too long is cut, and one with short pauses is not', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    response.write('begun')
    if (request.url === '/silent') return
    let left = 6
    const talking = setInterval(() => {
      left -= 1
      if (left > 0) response.write('.')
      else {
        clearInterval(talking)
        response.end()
      }
    }, 300)
  })
  const proxied = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/* timeout=1`] })
  const paths = ['/api/silent', '/api/talking']
  const bodies = await Promise.all(paths.map(async path => bodyOf(await answerOf(ask(t, proxied, { path })))))
  t.deepEqual(bodies, [
    { text: 'begun', isWhole: false },
    { text: 'begun.....', isWhole: true }
  ])
})

test('an upstream that does not read the request body becomes 504', async t => {
  const upstream = await startRawUpstream(t, socket => socket.pause())
  const proxied = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x timeout=1`] })
  const request = open(t, proxied, { method: 'POST', headers: { 'Content-Length': String(60 * MIB) } })
  request.write(Buffer.alloc(60 * MIB))
  t.is((await answerOf(request)).statusCode, 504)
  request.destroy()
})

test('a GET request that fails on a reused connection is sent once more on a new connection', async t => {
  const seen: string[] = []
  const upstream = await startRawUpstream(t, (socket, text, connection) => {
    const method = text.split('\r\n\r\n').at(-2)?.split(' ', 1).join() ?? ''
    seen.push(`${connection} ${method}`)
    if (connection === 1 && seen.length > 1) socket.resetAndDestroy()
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  })
  const { browser } = await startProxy(t, { rules: [`GET,POST /api/x ${upstream.origin}/x`] })
  t.is((await browser.get('/api/x')).statusCode, 200)
  t.is((await browser.get('/api/x')).statusCode, 200)
  t.deepEqual(seen, ['1 GET', '1 GET', '2 GET'])
})

for (const [what, method, bytes] of [
  ['with an unsafe method', 'POST', ''],
  ['whose response has begun', 'GET', 'HTTP/1.1 2']
] as const) {
  test(`a request ${what} is not sent again`, async t => {
    const seen: number[] = []
    const upstream = await startRawUpstream(t, (socket, _text, connection) => {
      seen.push(connection)
      if (seen.length === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      else socket.end(bytes)
    })
    const { browser } = await startProxy(t, { rules: [`GET,POST /api/x ${upstream.origin}/x`] })
    t.is((await browser.get('/api/x')).statusCode, 200)
    const response = await browser.request(method, '/api/x', { headers: { 'Sec-Fetch-Site': 'same-origin' } })
    t.is(response.statusCode, 502)
    t.deepEqual(seen, [1, 1])
  })
}

test('a request that fails on a new connection is not sent again', async t => {
  let count = 0
  const upstream = await startRawUpstream(t, socket => {
    count += 1
    socket.resetAndDestroy()
  })
  const { browser } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  t.is((await browser.get('/api/x')).statusCode, 502)
  t.is(count, 1)
})
