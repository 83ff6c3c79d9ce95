/**
 * Handles pipelined requests, which a client sends without waiting for earlier responses (RFC 9112 section 9.3.2). A
 * handler starts only when its response is the next one on its connection. Node would start all handlers at once. If
 * the client then disconnected, Node would not notify the responses that wait for their turn, and the files that these
 * responses have opened would stay open.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * The maximum number of requests that wait on one connection. Browsers do not pipeline requests, so a low limit is
 * enough. At least one request must be able to wait, because Node notices the end of a file late. A client that has
 * read the whole file may then have sent its next request already.
 */
const MAX_WAITING = 16

export type Pipelining = ReturnType<typeof inTurn>

/**
 * Creates the listener that runs the handlers in turn.
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
      // Node has not given the socket to this response, so the connection has ended or is about to end. The request is
      // dropped.
      if (response.socket === null) return
      const reject = rejections.get(response)
      if (reject) reject()
      else handle(request, response)
    })
  }

  return {
    /** The listener for the server's `request` event. It calls the handler. */
    listener(request: IncomingMessage, response: ServerResponse) {
      const { socket } = request
      // Node may still parse requests from data that it read before the connection was destroyed.
      if (socket.destroyed) return
      const before = newest.get(socket)
      newest.set(socket, response)
      if (response.socket === null && before) wait(before, request, response)
      else handle(request, response)
    },
    /**
     * Calls `reject`, which sends an error response, after the responses to all earlier requests on `socket`. If the
     * error is in the body of a request whose response has begun, destroys the connection instead.
     */
    rejectInTurn(socket: Socket, reject: () => void) {
      const response = newest.get(socket)
      if (!response || response.closed) reject()
      else if (response.req.complete) response.once('close', reject)
      else if (response.socket === null) rejections.set(response, reject)
      else if (response.headersSent) socket.destroy()
      else reject()
    }
  }
}
