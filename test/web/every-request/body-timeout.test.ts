// The time limits for request bodies.

import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Context } from 'koa'
import { eventually } from '../../helpers/eventually.js'
import { startTestServer } from '../../helpers/server.js'
import { startProxy, startUpstream } from '../../helpers/upstream.js'

const limits = { requestTimeout: 2000, connectionsCheckingInterval: 50 }
const head = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Length: ${length}\r\n`

async function readBody(ctx: Context) {
  let length = 0
  for await (const chunk of ctx.req) length += (chunk as Buffer).length
  ctx.body = { length }
}

function startCustomRoute(t: ExecutionContext, handler: (ctx: Context) => Promise<void>) {
  return startTestServer(t, { limits, parts: { extension: app => void app.use(handler) } })
}

/** Sends the request and then a piece of the body after each pause. Returns all bytes of the response. */
async function trickle(port: number, request: string, pieces: number, pauseMs: number, piece = 'x'): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', chunk => {
    text += String(chunk)
  })
  socket.on('error', () => {})
  socket.write(request)
  for (let sent = 0; sent < pieces && !socket.destroyed; sent++) {
    await pause(pauseMs)
    socket.write(piece)
  }
  await Promise.race([once(socket, 'close'), eventually(() => text.includes('}'))])
  socket.destroy()
  return text
}

// 20 kB/s, if the machine keeps up with the pauses. A machine that is ten times slower still reaches the minimum rate.
const piece = 'x'.repeat(2000)

test('a custom route reads a body of 20 kB/s without a total time limit, and gets 408 if the client sends slowly or stops', async t => {
  const { server } = await startCustomRoute(t, readBody)
  const text = await trickle(server.port, `${head('/upload', 40 * piece.length)}\r\n`, 40, 100, piece)
  t.regex(text, /^HTTP\/1\.1 200/)
  t.regex(text, /"length":80000/)
  const startedAt = performance.now()
  t.regex(await trickle(server.port, `${head('/upload', 1000)}\r\n`, 100, 100), /^HTTP\/1\.1 408/)
  t.true(performance.now() - startedAt >= limits.requestTimeout)
  t.regex(await trickle(server.port, `${head('/upload', 15)}\r\n`, 2, 10), /^HTTP\/1\.1 408/)
})

test('a body that no route reads must arrive within the time limit, even if bytes still arrive', async t => {
  const { server } = await startCustomRoute(t, () => new Promise(() => {}))
  t.regex(await trickle(server.port, `${head('/upload', 100)}\r\n`, 40, 100), /^HTTP\/1\.1 408/)
})

test('a client that still sends a body slowly after its response is disconnected without a second response', async t => {
  const { server } = await startTestServer(t, { limits })
  const text = await trickle(server.port, `${head('/nothing', 100)}\r\n`, 100, 100)
  t.regex(text, /^HTTP\/1\.1 405/)
  t.notRegex(text, /HTTP\/1\.1 408/)
})

test('a route that reads a received body slowly does not cause a 408', async t => {
  const { server } = await startCustomRoute(t, async ctx => {
    const body = ctx.req[Symbol.asyncIterator]()
    await body.next()
    await pause(4000)
    let length = 1
    for (let next = await body.next(); !next.done; next = await body.next()) length += (next.value as Buffer).length
    ctx.body = { length }
  })
  const socket = connect(server.port, '127.0.0.1')
  const pieces = 40
  socket.write(`${head('/upload', 1 + pieces * 65_536)}\r\nx`)
  await pause(100)
  for (let piece = 0; piece < pieces; piece++) socket.write(Buffer.alloc(65_536))
  const [answer] = await once(socket, 'data')
  t.regex(String(answer), /^HTTP\/1\.1 200/)
  socket.destroy()
})

test('a proxied upload of 20 kB/s has no total time limit, and gets 408 if the client sends slowly or stops', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    request.resume().on('end', () => response.end('{}'))
  })
  const { server, cookie } = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x timeout=2`] }, { limits })
  const request = (length: number) => `${head('/api/x', length)}Cookie: ${cookie}\r\n\r\n`
  t.regex(await trickle(server.port, request(40 * piece.length), 40, 100, piece), /^HTTP\/1\.1 200/)
  t.is(String(await upstream.requests[0]?.body()), piece.repeat(40))
  t.regex(await trickle(server.port, request(1000), 100, 100), /^HTTP\/1\.1 408/)
  await upstream.requests[1]?.aborted
  t.regex(await trickle(server.port, request(15), 2, 10), /^HTTP\/1\.1 408/)
  await upstream.requests[2]?.aborted
})

test('the time limit for a body does not include the time in which the request waits in the line of the proxy', async t => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream(t, (request, response) => {
    if (request.method === 'GET') held.push(response)
    else request.resume().on('end', () => response.end('{}'))
  })
  const rules = [`GET,POST /api/x ${upstream.origin}/x timeout=60`]
  const { server, cookie } = await startProxy(t, { rules }, { limits })
  const headers = { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin' }
  const options = { port: server.port, host: '127.0.0.1', path: '/api/x', agent: false }
  for (let count = 0; count < 32; count++) http.get({ ...options, headers }).on('response', answer => answer.resume())
  await eventually(() => held.length === 32)
  const length = 2_000_000
  const upload = http.request({ ...options, method: 'POST', headers: { ...headers, 'Content-Length': length } })
  upload.end(Buffer.alloc(length))
  await pause(2 * limits.requestTimeout)
  for (const response of held) response.end('{}')
  const [answer] = (await once(upload, 'response')) as [http.IncomingMessage]
  t.is(answer.statusCode, 200)
  t.is((await upstream.requests.at(-1)?.body())?.length, length)
})
