/**
 * Controls the arrival of requests: handles the requests of one connection one after the other, limits the time of
 * request bodies, and counts running handlers for shutdown.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientLimits } from './connections.js'

/**
 * The maximum number of requests that wait on one connection. Browsers do not pipeline requests, so a low limit is enough. At
 * least one request must be able to wait, because Node is late to emit `close` for a response. A client that has already read the
 * whole response may have sent its next request before that.
 */
const MAX_WAITING = 16

export type Pipelining = ReturnType<typeof inTurn>

/**
 * Creates a listener that runs the handlers of pipelined requests one after the other. A client pipelines if it sends a
 * request without waiting for earlier responses (RFC 9112 section 9.3.2). A handler starts only when all earlier
 * responses of its connection have been sent. By default, Node starts all handlers immediately. If the client then
 * disconnected, Node would not notify the responses that wait for their turn, so the files that these responses have
 * opened would stay open.
 *
 * @param handle called once for each request, in the order of the requests on each connection
 * @param onTooMany called when too many requests wait on a connection, before the connection is destroyed
 */
export function inTurn(handle: RequestListener, onTooMany: () => void) {
  const newest = new WeakMap<Socket, ServerResponse>()
  const waiting = new WeakMap<Socket, number>()
  const rejections = new WeakMap<ServerResponse, () => void>()

  function wait(before: ServerResponse, request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > MAX_WAITING) {
      onTooMany()
      socket.destroy()
      return
    }
    waiting.set(socket, count)
    before.once('close', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      // Node has not assigned the socket to this response, so the connection has ended or is about to end. The request
      // is therefore dropped.
      if (response.socket === null) return
      const reject = rejections.get(response)
      if (reject) reject()
      else handle(request, response)
    })
  }

  return {
    /** The listener for the server's `request` event. */
    listener(request: IncomingMessage, response: ServerResponse): void {
      const { socket } = request
      // Node may still parse requests from data that it read before the connection was destroyed.
      if (socket.destroyed) return
      const before = newest.get(socket)
      newest.set(socket, response)
      if (response.socket === null && before) wait(before, request, response)
      else handle(request, response)
    },
    /**
     * Calls `reject`, which sends an error response, when all earlier requests on `socket` have got their responses. If the error
     * is in the body of a request whose response has begun, destroys the connection instead.
     */
    rejectInTurn(socket: Socket, reject: () => void): void {
      const response = newest.get(socket)
      if (!response || response.closed) reject()
      else if (response.req.complete) response.once('close', reject)
      else if (response.socket === null) rejections.set(response, reject)
      else if (response.headersSent) socket.destroy()
      else reject()
    }
  }
}

/**
 * Counts the handlers that are running, so that shutdown can wait for them. A handler continues after its client has
 * disconnected, because other requests may need the refresh that it has begun.
 */
export function countRequests(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  let count = 0
  let onAllEnded: (() => void) | undefined

  return {
    /** Runs the handler of a request and counts it until the handler has ended. Never rejects. */
    async run(request: IncomingMessage, response: ServerResponse): Promise<void> {
      count += 1
      // Koa has already responded to every error, so the error can be ignored here.
      await handle(request, response).catch(() => {})
      count -= 1
      if (count === 0) onAllEnded?.()
    },
    /** Returns the number of handlers that are running. */
    count: () => count,
    /** Resolves when no handler is running. */
    ended() {
      return new Promise<void>(resolve => {
        onAllEnded = resolve
        if (count === 0) resolve()
      })
    }
  }
}

interface IncomingBody {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  bytesRead: number
  creditMs: number
}

// The requests whose bodies this server is not ready to read.
const postponed = new WeakSet<IncomingMessage>()

/**
 * Pauses the time limit for the body of a request, because this server is not ready to read the body. Returns a
 * function that resumes the time limit.
 */
export function postponeBody(request: IncomingMessage): () => void {
  postponed.add(request)
  return () => void postponed.delete(request)
}

/**
 * Limits the time that a client may take to send a request body. Node's `requestTimeout` limits the whole request, so
 * it would end a long upload even if data arrives steadily. Here, a client has a credit of time, and each part of the
 * body that a route reads adds to the credit. A body must therefore arrive at a minimum average rate. A body that no
 * route reads must arrive completely within the credit.
 *
 * If a body takes too long, the server emits `clientError` with the code ERR_HTTP_REQUEST_TIMEOUT,
 * as Node does for its own time limit.
 * @param limits.requestTimeout the time credit with which a client begins. The credit never exceeds this value, so no
 *   pause in a body may be longer.
 */
export function limitBodyTimes(server: Server, limits: ClientLimits): void {
  const { requestTimeout, minBodyBytesPerSecond, connectionsCheckingInterval } = limits
  // The first check may come immediately after the beginning of a body, so the credit is one interval longer.
  const maxCreditMs = requestTimeout + connectionsCheckingInterval
  // A connection carries one request body at a time, so the map needs only one entry for each connection.
  const incoming = new Map<Socket, IncomingBody>()

  server.on('request', watch)
  server.on('checkExpectation', watch)

  function watch(request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    if (!hasBody(request)) incoming.delete(socket)
    else incoming.set(socket, { request, response, bytesRead: socket.bytesRead, creditMs: maxCreditMs })
  }

  function check() {
    for (const [socket, body] of incoming) {
      if (body.request.complete || socket.destroyed) incoming.delete(socket)
      else {
        charge(body)
        if (body.creditMs > 0) continue
        incoming.delete(socket)
        end(body)
      }
    }
  }

  function charge(body: IncomingBody) {
    const { request, response } = body
    const { bytesRead } = request.socket
    const newBytes = bytesRead - body.bytesRead
    body.bytesRead = bytesRead
    const isRead = request.readableDidRead && !response.writableFinished
    if (isRead) body.creditMs += (newBytes / minBodyBytesPerSecond) * 1000
    // If the route has not yet read all data that has arrived, or if the response has begun, the client did not cause
    // the pause.
    const isOurPause = isRead ? request.readableLength > 0 || response.headersSent : postponed.has(request)
    // Each check subtracts one interval, however long ago the last check was. So a suspension of the process costs the
    // client at most one interval.
    body.creditMs = Math.min(body.creditMs - (isOurPause ? 0 : connectionsCheckingInterval), maxCreditMs)
  }

  function end({ request: { socket }, response }: IncomingBody) {
    // If the response was already sent, the client would mistake an error response for the response to its next
    // request.
    if (response.writableFinished) socket.destroy()
    else
      server.emit(
        'clientError',
        Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        socket
      )
  }

  const checking = setInterval(check, connectionsCheckingInterval).unref()
  server.once('close', () => clearInterval(checking))
}

/** True if the request has a body (RFC 9112 section 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Prevents Node's time limits from including the time during which the process was stopped, for example by SIGSTOP or
 * because its container was frozen. When the process continues, Node first compares the age of each connection with
 * `headersTimeout` and `requestTimeout`, and only then reads the data that has arrived. Complete requests would
 * therefore get 408.
 *
 * Call this function before the server listens. Node checks the limits once in each interval. Before each check, this
 * function measures how long the latest intervals took: as many intervals as fit into the limit, and one more. If they
 * took longer than the limit, it raises the limit to the measured time. Even if the process was stopped, a client
 * therefore has at least the given time. If the process was not stopped, a client has at most one additional interval.
 * @param limits.requestTimeout 0 for no limit
 */
export function ignoreStops(server: Server, limits: ClientLimits): void {
  const { headersTimeout, requestTimeout, connectionsCheckingInterval } = limits
  const checksIn = (ms: number) => Math.ceil(ms / connectionsCheckingInterval) + 1
  const kept = checksIn(Math.max(headersTimeout, requestTimeout))
  const checkedAt: number[] = []
  const sinceCheck = (count: number, now: number) => Math.ceil(now - (checkedAt.at(-count) ?? checkedAt[0] ?? now))

  function setLimits() {
    const now = performance.now()
    server.headersTimeout = Math.max(headersTimeout, sinceCheck(checksIn(headersTimeout), now))
    if (requestTimeout > 0) server.requestTimeout = Math.max(requestTimeout, sinceCheck(checksIn(requestTimeout), now))
    checkedAt.push(now)
    if (checkedAt.length > kept) checkedAt.shift()
  }

  // Node starts its own timer in a later listener of the same event. Timers of the same length run in the order in
  // which they were started, so this timer runs before Node's.
  server.prependListener('listening', () => {
    checkedAt.push(performance.now())
    const timer = setInterval(setLimits, connectionsCheckingInterval).unref()
    server.once('close', () => clearInterval(timer))
  })
}
