/**
 * Limits the time that a client may take to send a request body. Node's `requestTimeout` limits the whole request, so
 * it would end a long upload even if data arrives steadily. Here, a client has a credit of time, and each part of the
 * body that a route reads adds to the credit. A body must therefore arrive at a minimum average rate. A body that no
 * route reads must arrive completely within the credit.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface BodyLimits {
  /** The credit of a client in milliseconds, at the beginning and at most. It is also the longest pause in a body. */
  readonly requestTimeout: number
  /** The rate at which a body that a route reads must arrive on average after the first `requestTimeout`. */
  readonly minBodyBytesPerSecond: number
  /** Milliseconds between two checks of the bodies. */
  readonly connectionsCheckingInterval: number
}

interface IncomingBody {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  bytesRead: number
  creditMs: number
}

// The bodies that this server does not read yet.
const postponed = new WeakSet<IncomingMessage>()

/**
 * Stops the time limit for the body of a request, because this server is not ready to read the body. Returns a function
 * that continues the time limit.
 */
export function postponeBody(request: IncomingMessage): () => void {
  postponed.add(request)
  return () => void postponed.delete(request)
}

/**
 * Starts the checks. If a body takes too long, the server emits `clientError` with the code ERR_HTTP_REQUEST_TIMEOUT,
 * as Node does for its own time limit.
 */
export function limitBodies(server: Server, limits: BodyLimits): void {
  const { requestTimeout, minBodyBytesPerSecond, connectionsCheckingInterval } = limits
  // The first check may come immediately after the beginning of a body.
  const maxCreditMs = requestTimeout + connectionsCheckingInterval
  // A connection carries one request body at a time, so the map needs only one entry for each connection.
  const incoming = new Map<Socket, IncomingBody>()
  const watched = new WeakSet<Socket>()

  server.on('request', watch)
  server.on('checkExpectation', watch)

  function watch(request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    if (!hasBody(request)) {
      incoming.delete(socket)
      return
    }
    incoming.set(socket, { request, response, bytesRead: socket.bytesRead, creditMs: maxCreditMs })
    if (watched.has(socket)) return
    watched.add(socket)
    socket.once('close', () => incoming.delete(socket))
  }

  function check() {
    for (const [socket, body] of incoming) {
      if (body.request.complete) incoming.delete(socket)
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
    // The client is not responsible for a pause if the route has not read all data yet, or if the response has begun.
    const isOurPause = isRead ? request.readableLength > 0 || response.headersSent : postponed.has(request)
    // A check costs the time of one interval, however long ago the last check was. The client is therefore not charged
    // for a time in which the process was suspended.
    body.creditMs = Math.min(body.creditMs - (isOurPause ? 0 : connectionsCheckingInterval), maxCreditMs)
  }

  function end({ request: { socket }, response }: IncomingBody) {
    // The response has been sent already. The client would mistake an error response for the response to its next
    // request.
    if (response.writableFinished) socket.destroy()
    else
      server.emit(
        'clientError',
        Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        socket
      )
  }

  const checking = setInterval(check, connectionsCheckingInterval)
  checking.unref()
  server.once('close', () => clearInterval(checking))
}

/** True if the request has a body (RFC 9112 section 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
