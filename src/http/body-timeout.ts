/**
 * Limits the time that a client may take to send a request body. Node's `requestTimeout` limits the whole request, so
 * it would end a long upload even if data arrives steadily. Here, the limit applies to pauses if a route reads the
 * body. A body that no route reads must arrive completely within the limit.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface BodyLimits {
  /**
   * The longest pause in a body that a route reads, and the time limit for a body that no route reads, in milliseconds.
   */
  readonly requestTimeout: number
  /** Milliseconds between two checks of the bodies. */
  readonly connectionsCheckingInterval: number
}

interface IncomingBody {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  bytesRead: number
  lastProgressAt: number
}

/**
 * Starts the checks. If a body takes too long, the server emits `clientError` with the code ERR_HTTP_REQUEST_TIMEOUT,
 * as Node does for its own time limit.
 */
export function limitBodies(server: Server, { requestTimeout, connectionsCheckingInterval }: BodyLimits): void {
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
    incoming.set(socket, { request, response, bytesRead: 0, lastProgressAt: performance.now() })
    if (watched.has(socket)) return
    watched.add(socket)
    socket.once('close', () => incoming.delete(socket))
  }

  function check() {
    const now = performance.now()
    for (const [socket, body] of incoming) {
      if (body.request.complete) incoming.delete(socket)
      else if (isInProgress(body)) body.lastProgressAt = now
      else if (now - body.lastProgressAt > requestTimeout) {
        incoming.delete(socket)
        end(body)
      }
    }
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

/**
 * True if a route reads the body and the client is not responsible for a pause. The client is not responsible if new
 * data has arrived, if the route has not read all data yet, or if the response has begun but is not finished.
 */
function isInProgress(body: IncomingBody): boolean {
  const { request, response } = body
  if (!request.readableDidRead || response.writableFinished) return false
  const { bytesRead } = request.socket
  const hasMoved = bytesRead !== body.bytesRead
  body.bytesRead = bytesRead
  return hasMoved || request.readableLength > 0 || response.headersSent
}
