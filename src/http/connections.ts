/**
 * Tracks the connections of a server, so that shutdown can close them without cutting off a response. Node's own
 * `server.close()` waits for every connection that is kept alive or that has never been used.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Connections {
  /** From now on every response is the last on its connection. */
  drain(): void
  /** Accepts no more connections and resolves when all have ended. Those still open after `graceMs` are destroyed. */
  end(graceMs: number): Promise<void>
}

// Node's undocumented reference to the response in progress. Counting responses ourselves would cost time on every
// request, although the count is needed only once, at the end.
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

export interface ConnectionLimits {
  /**
   * Time limit in milliseconds for a client that stops reading its response. The connection is closed after one to two
   * times this limit, because Node checks for progress once per limit.
   */
  readonly unreadTimeout: number
  /** Milliseconds between two checks of the connections. */
  readonly connectionsCheckingInterval: number
}

export function watchConnections(server: Server, limits: ConnectionLimits): Connections {
  const open = new Set<HttpSocket>()
  let onAllClosed = () => {}
  endUnread(server, open, limits)

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
    // Headers that were sent already promised to keep the connection open, and Node keeps that promise.
    if (response.headersSent) response.once('close', () => endAfterResponse(socket))
  }

  return {
    drain() {
      // The listener runs before the handler, because the handler may send the headers at once.
      server.prependListener('request', (_request, response) => {
        response.shouldKeepAlive = false
      })
      for (const socket of open) if (socket._httpMessage) endAfterResponse(socket)
    },
    end(graceMs) {
      return new Promise(resolve => {
        const deadline = setTimeout(() => server.closeAllConnections(), graceMs)
        server.close(() => {
          clearTimeout(deadline)
          // The 'close' events of the last connections come a moment later.
          if (open.size === 0) resolve()
          else onAllClosed = resolve
        })
        // Browsers open connections before they need them, and Node counts a connection without a request as busy.
        for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
      })
    }
  }
}

/**
 * Ends connections whose client has stopped reading. Only connections with unsent data have a time limit, since a
 * client may wait for its response, or for the next part of it, for any time. Node's own limit (`server.timeout`) would
 * apply to all of them, and every response would pay for restarting its timer.
 */
function endUnread(
  server: Server,
  open: ReadonlySet<Socket>,
  { unreadTimeout, connectionsCheckingInterval }: ConnectionLimits
) {
  const timedByUs = new WeakSet<Socket>()
  const timer = setInterval(() => {
    for (const socket of open) {
      // Node restarts the timer whenever data is sent, and destroys the socket when the time is over. A timeout that
      // the program has set itself is left alone.
      if (socket.writableLength > 0 && !socket.timeout) {
        socket.setTimeout(unreadTimeout)
        timedByUs.add(socket)
      } else if (socket.writableLength === 0 && timedByUs.delete(socket) && socket.timeout === unreadTimeout) {
        socket.setTimeout(0)
      }
    }
  }, connectionsCheckingInterval)
  timer.unref()
  server.once('close', () => clearInterval(timer))
}
