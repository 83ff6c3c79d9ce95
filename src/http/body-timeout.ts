/**
 * Limits the time of request bodies. Node's `requestTimeout` limits a request as a whole, so it would end a long upload even
 * if data arrives steadily. Here, a body that a route reads only has to make progress. A body that no route reads has to
 * arrive in time.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface BodyLimits {
  /** Milliseconds until a body that no route reads must be complete, and for which a body that is read may make no progress. */
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

/** Reports a body that takes too long as Node does, with `clientError` and the code ERR_HTTP_REQUEST_TIMEOUT. */
export function limitBodies(server: Server, { requestTimeout, connectionsCheckingInterval }: BodyLimits): void {
  // A connection carries one body at a time, so the next request replaces the previous one.
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
    // The client has received its response. It would mistake a second response for the one to its next request.
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
 * True if the client is not responsible for a pause: data has arrived, the route has not read all of it yet, or the response
 * has begun.
 */
function isInProgress(body: IncomingBody): boolean {
  const { request, response } = body
  if (!request.readableDidRead || response.writableFinished) return false
  const { bytesRead } = request.socket
  const hasMoved = bytesRead !== body.bytesRead
  body.bytesRead = bytesRead
  return hasMoved || request.readableLength > 0 || response.headersSent
}
