/**
 * Handles pipelined requests, which a client sends without waiting for earlier responses (RFC 9112 section 9.3.2). A
 * handler starts only when its response is the next one on its connection. Node would start all handlers at once. It
 * would also never tell a queued response that its client has disconnected, so the files that it holds would stay open.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Longest queue on one connection. Browsers never pipeline. A client that has read a whole file may send its next
 * request a moment before Node notices the end of the file, so at least one request must be able to wait.
 */
const MAX_WAITING = 16

export interface Pipelining {
  /** Listener for the `request` event, in place of the handler. */
  readonly listener: RequestListener
  /**
   * Calls `refuse` after every complete request on `socket` has been answered, so that the error response comes in its
   * turn. If the error is in the body of a request whose response has begun, the connection is destroyed instead.
   */
  refuseInTurn(socket: Socket, refuse: () => void): void
}

/**
 * Creates the listener that runs the handlers in turn.
 * @param handle called once for each request, in the order of the requests on each connection
 * @param onTooMany called when too many requests wait on a connection, before the connection is destroyed
 */
export function inTurn(handle: RequestListener, onTooMany: () => void): Pipelining {
  const newest = new WeakMap<Socket, ServerResponse>()
  const waiting = new WeakMap<Socket, number>()
  const refusals = new WeakMap<ServerResponse, () => void>()

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
      // A response without a socket is not the next one. Its connection has ended, or will end with the response before
      // it.
      if (response.socket === null) return
      const refuse = refusals.get(response)
      if (refuse) refuse()
      else handle(request, response)
    })
  }

  return {
    listener(request, response) {
      const { socket } = request
      // Node still parses requests from data that it read before their connection was destroyed.
      if (socket.destroyed) return
      const before = newest.get(socket)
      newest.set(socket, response)
      if (response.socket === null && before) wait(before, request, response)
      else handle(request, response)
    },
    refuseInTurn(socket, refuse) {
      const response = newest.get(socket)
      if (!response || response.closed) refuse()
      else if (response.req.complete) response.once('close', refuse)
      else if (response.socket === null) refusals.set(response, refuse)
      else if (response.headersSent) socket.destroy()
      else refuse()
    }
  }
}
