/**
 * The time limit of request bodies. Node's `requestTimeout` limits a request as a whole, so a long upload that a route reads would be cut
 * however steadily it arrives. Here a body that is read only has to keep moving, and one that nobody reads has to arrive in time.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface BodyPatience {
  /** Milliseconds for a body that nobody reads, and for the silence of a client whose body is read. */
  readonly requestTimeout: number
  /** Milliseconds from one look at the bodies to the next. */
  readonly connectionsCheckingInterval: number
}

interface Arriving {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  bytesRead: number
  movedAt: number
}

/** Reports a body that takes too long as Node does, with `clientError` and the code ERR_HTTP_REQUEST_TIMEOUT. */
export function limitBodies(server: Server, { requestTimeout, connectionsCheckingInterval }: BodyPatience): void {
  // Bodies arrive one after the other on a connection, so the next request takes the place of the one before.
  const arriving = new Map<Socket, Arriving>()
  const watched = new WeakSet<Socket>()

  server.on('request', watch)
  server.on('checkExpectation', watch)

  function watch(request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    if (!hasBody(request)) {
      arriving.delete(socket)
      return
    }
    arriving.set(socket, { request, response, bytesRead: 0, movedAt: performance.now() })
    if (watched.has(socket)) return
    watched.add(socket)
    socket.once('close', () => arriving.delete(socket))
  }

  function check() {
    const now = performance.now()
    for (const [socket, body] of arriving) {
      if (body.request.complete) arriving.delete(socket)
      else if (isMoving(body)) body.movedAt = now
      else if (now - body.movedAt > requestTimeout) {
        arriving.delete(socket)
        end(body)
      }
    }
  }

  function end({ request: { socket }, response }: Arriving) {
    // The client has its answer already. Another one would be taken for the answer to its next request.
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

/** True if a body comes with the request (RFC 9112 section 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** True if the client is not to blame for the silence: bytes came, the route does not take them, or its answer is on the way. */
function isMoving(body: Arriving): boolean {
  const { request, response } = body
  if (!request.readableDidRead || response.writableFinished) return false
  const { bytesRead } = request.socket
  const hasMoved = bytesRead !== body.bytesRead
  body.bytesRead = bytesRead
  return hasMoved || request.readableLength > 0 || response.headersSent
}
