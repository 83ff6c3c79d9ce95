/**
 * Tracks the connections of a server, so that shutdown can close them without aborting a response. Node's own
 * `server.close()` closes only connections that are idle at that moment. It waits for connections that become idle
 * later, and for connections that were never used.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { closeServer } from '../../base/listener.js'

// Node's undocumented reference to the response in progress. It is needed only at shutdown, and tracking the responses
// here would cost time for every request.
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/** The limits for the clients of an HTTP server, besides `keepAlive` of the settings. Times are milliseconds. */
export const CLIENT_LIMITS = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  // The minimum average rate of a body that a route reads. It applies after the first `requestTimeout` milliseconds.
  minBodyBytesPerSecond: 1000,
  // Without this limit, a client that stops reading its response would keep the connection and the file open forever.
  // The limit is long because the buffers of the system hold megabytes, and a slow client takes minutes to empty them.
  // The connection is closed after one to two times this limit, because Node checks for progress only when the limit
  // has passed.
  unreadTimeout: 300_000,
  // With Node's default of 30 seconds, a slow client would have up to twice the time of `requestTimeout`.
  connectionsCheckingInterval: 5_000
}

export type ClientLimits = typeof CLIENT_LIMITS & { readonly keepAliveTimeout: number }

export function watchConnections(server: Server, { unreadTimeout, connectionsCheckingInterval }: ClientLimits) {
  const open = new Set<HttpSocket>()
  let onAllClosed = () => {}
  endUnread()

  server.on('connection', (socket: HttpSocket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) onAllClosed()
    })
  })

  function endAfterResponse(socket: HttpSocket) {
    const response = socket._httpMessage
    if (!response) {
      socket.end()
      return
    }
    response.shouldKeepAlive = false
    // The headers were already sent and promised keep-alive, so Node does not close the connection after the response.
    if (response.headersSent) response.once('close', () => endAfterResponse(socket))
  }

  /**
   * Closes connections whose clients have stopped reading. The time limit applies only to connections with unsent data,
   * because a client may have to wait a long time for a response or for its next part. Node's own limit
   * (`server.timeout`) would apply to all connections, and restarting its timer would cost time for every response.
   */
  function endUnread() {
    const timedByUs = new WeakSet<Socket>()
    const timer = setInterval(() => {
      for (const socket of open) {
        // Node restarts the timer whenever data is sent, and destroys the socket when the timer ends. A timeout that
        // other code has set is not changed.
        if (socket.writableLength > 0 && !socket.timeout) {
          socket.setTimeout(unreadTimeout)
          timedByUs.add(socket)
        } else if (socket.writableLength === 0 && timedByUs.delete(socket) && socket.timeout === unreadTimeout) {
          socket.setTimeout(0)
        }
      }
    }, connectionsCheckingInterval).unref()
    server.once('close', () => clearInterval(timer))
  }

  return {
    /** Closes each connection as soon as its current or next response has been sent. */
    drain() {
      // This listener must run before the handler, because the handler may send the headers immediately.
      server.prependListener('request', (_request, response) => {
        response.shouldKeepAlive = false
      })
      for (const socket of open) if (socket._httpMessage) endAfterResponse(socket)
    },
    /**
     * Stops accepting connections. Resolves when all connections have ended. After `graceMs` milliseconds, destroys the
     * connections that are still open.
     */
    async end(graceMs: number) {
      const closed = closeServer(server, graceMs)
      // Browsers open connections in advance, and Node would wait for a connection on which no request has arrived, so
      // such connections are destroyed.
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
      await closed
      if (open.size === 0) return
      // The last connections emit `close` slightly later, so this function waits for these events, too.
      await new Promise<void>(resolve => {
        onAllClosed = resolve
      })
    }
  }
}
