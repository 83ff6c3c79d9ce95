/**
 * Pipelined requests, which a client sends without waiting for the responses before them (RFC 9112 section 9.3.2). A
 * handler starts when its response is the next on its connection. Node would start all of them at once, and would never
 * tell a queued response that its client has gone, so that the files it holds would stay open.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Requests that may wait on one connection. Browsers never pipeline. A client that has read a whole file may send its
 * next request a moment before Node notices the end of the file, so at least one has to wait.
 */
const MOST_WAITING = 16

export interface Pipelining {
  /** For the `request` event, in place of the handler. */
  readonly listener: RequestListener
  /**
   * Calls `refuse` when every complete request on `socket` has been answered, for an error that belongs after them. If the
   * error is in the body of a request whose response has begun, the connection is destroyed instead.
   */
  refuseInTurn(socket: Socket, refuse: () => void): void
}

/**
 * @param handle is called once for each request, in their order on each connection
 * @param onTooMany is told of a connection on which too many requests wait, before it is destroyed
 */
export function inTurn(handle: RequestListener, onTooMany: () => void): Pipelining {
  const newest = new WeakMap<Socket, ServerResponse>()
  const waiting = new WeakMap<Socket, number>()
  const refusals = new WeakMap<ServerResponse, () => void>()

  function wait(before: ServerResponse, request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > MOST_WAITING) {
      onTooMany()
      socket.destroy()
      return
    }
    waiting.set(socket, count)
    before.once('close', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      // Without a socket the response is not the next: the connection has ended, or ends with the response before.
      if (response.socket === null) return
      const refuse = refusals.get(response)
      if (refuse) refuse()
      else handle(request, response)
    })
  }

  return {
    listener(request, response) {
      const { socket } = request
      // Requests that Node parses from what was read before their connection was destroyed.
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
