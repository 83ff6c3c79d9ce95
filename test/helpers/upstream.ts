// Upstream servers for the API proxy: one records the requests and responds by HTTP, the other responds with raw bytes.
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'
import { sessionHeader } from '../web/support.js'
import type { TestSettings } from './config.js'
import { listen } from './ports.js'
import { sendRaw } from './raw.js'
import { signIn, startTestServer, type TestServerOptions } from './server.js'

type Test = Pick<ExecutionContext, 'teardown'>

export interface UpstreamRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  /** Returns all values of a header. The name must be in lower case. */
  headers(name: string): readonly string[]
  /** Resolves when the request has ended. */
  readonly body: () => Promise<Buffer>
  /** The number of the connection that carried the request, counted from 1. */
  readonly connection: number
  readonly aborted: Promise<void>
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Responds with 200 and `{}` by default. */
export async function startUpstream(t: Test, answer: Answer = answerJson) {
  const requests: UpstreamRequest[] = []
  // The method and the target of each request, for example `GET /x?y`.
  const requestLines: string[] = []
  const connections: Socket[] = []
  const server = http.createServer({ keepAliveTimeout: 60_000, insecureHTTPParser: false }, (request, response) => {
    const { method = '', url = '', rawHeaders, socket } = request
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    const body = once(request, 'end').then(() => Buffer.concat(chunks))
    body.catch(() => {})
    const aborted = once(response, 'close').then(() => {
      if (response.writableFinished) return new Promise<void>(() => {})
      return undefined
    })
    requestLines.push(`${method} ${url}`)
    requests.push({
      method,
      url,
      rawHeaders,
      headers: name => valuesOf(rawHeaders, name),
      body: () => body,
      connection: connections.indexOf(socket) + 1,
      aborted
    })
    answer(request, response)
  })
  server.on('connection', socket => void connections.push(socket))
  const port = await listen(t, server)
  return { origin: `http://127.0.0.1:${port}`, port, requests, requestLines, connections, server }
}

function answerJson(_request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('Content-Type', 'application/json')
  response.end('{}')
}

function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)
}

/** Calls `react` whenever bytes arrive, with all bytes that this connection has received so far. */
export async function startRawUpstream(t: Test, react: (socket: Socket, text: string, connection: number) => void) {
  // The bytes received on each connection, in the order in which the connections were opened.
  const received: (() => string)[] = []
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: false }, socket => {
    const connection = sockets.push(socket)
    let text = ''
    received.push(() => text)
    socket.on('error', () => {})
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      react(socket, text, connection)
    })
  })
  const port = await listen(t, server)
  return { origin: `http://127.0.0.1:${port}`, port, received, sockets }
}

/** Responds to every complete request head with the same latin1 bytes, for requests without a body. */
export function startFixedUpstream(t: Test, bytes: string, { close = false } = {}) {
  return startRawUpstream(t, (socket, text) => {
    const heads = text.split('\r\n\r\n').length - 1
    if (heads === 0) return
    const data = Buffer.from(bytes, 'latin1')
    if (close) socket.end(data)
    else socket.write(data)
  })
}

export type ProxiedServer = Awaited<ReturnType<typeof startProxy>>

/** Starts a server with proxy rules and a signed-in browser. */
export async function startProxy(t: Test, apiProxy: TestSettings['apiProxy'], options: TestServerOptions = {}) {
  const started = await startTestServer(t, { ...options, settings: { ...options.settings, apiProxy } })
  await signIn(started.browser)
  const cookie = sessionHeader(started.browser)
  /** Sends raw bytes in which `COOKIE` is replaced by the Cookie header of the session. */
  const raw = (pieces: string | readonly string[], more: Parameters<typeof sendRaw>[2] = {}) =>
    sendRaw(
      started.server.port,
      [pieces].flat().map(piece => piece.replaceAll('COOKIE', cookie)),
      more
    )
  return { ...started, cookie, raw }
}
