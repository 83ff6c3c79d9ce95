/**
 * The connections of a server and how they end without an answer cut short. Node's own `server.close()` waits for a
 * connection as long as it is kept alive, or as long as nothing comes on it at all.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Connections {
  /** Whether a part of an answer has been sent on this connection. */
  isAnswering(socket: Socket): boolean
  /** From now on every answer is the last on its connection. */
  drain(): void
  /** Takes no more connections and resolves when all have ended; what is not finished within `graceMs` is cut. */
  end(graceMs: number): Promise<void>
}

// Node's own mark of the answer a connection is busy with, for as long as there was HTTP in Node. Counting answers
// ourselves would cost every request something, for a moment that comes once.
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

export interface Patience {
  /**
   * Milliseconds after which a client that takes in nothing more of its answer loses its connection; up to twice as long,
   * since Node looks for progress once in that time.
   */
  readonly unreadTimeout: number
  /** Milliseconds from one look at the connections to the next. */
  readonly connectionsCheckingInterval: number
}

export function watchConnections(server: Server, patience: Patience): Connections {
  const open = new Set<HttpSocket>()
  let lastHasClosed = () => {}
  endUnread(server, open, patience)

  server.on('connection', (socket: HttpSocket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      if (open.size === 0) lastHasClosed()
    })
  })

  function endAfterAnswer(socket: HttpSocket) {
    const answer = socket._httpMessage
    if (!answer) {
      socket.end()
      return
    }
    answer.shouldKeepAlive = false
    // Headers that have gone already promised to keep the connection; Node keeps that promise, so the end is ours.
    if (answer.headersSent) answer.once('close', () => endAfterAnswer(socket))
  }

  return {
    isAnswering(socket: HttpSocket) {
      return socket._httpMessage?.headersSent === true
    },
    drain() {
      // Before the handler that answers: it may send the headers at once.
      server.prependListener('request', (_request, response) => {
        response.shouldKeepAlive = false
      })
      for (const socket of open) if (socket._httpMessage) endAfterAnswer(socket)
    },
    end(graceMs) {
      return new Promise(resolve => {
        const deadline = setTimeout(() => server.closeAllConnections(), graceMs)
        server.close(() => {
          clearTimeout(deadline)
          // A moment before the last answers learn that their connection has ended.
          if (open.size === 0) resolve()
          else lastHasClosed = resolve
        })
        // Browsers connect ahead of need, and Node counts a connection on which nothing came yet among the busy.
        for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
      })
    }
  }
}

/**
 * Ends connections whose client has stopped reading. Only those with something unsent are timed: a client may wait for
 * its answer, or for the next piece of it, as long as that takes. Node's timer (`server.timeout`) would time them all, and
 * every answer would pay for winding it up.
 */
function endUnread(
  server: Server,
  open: ReadonlySet<Socket>,
  { unreadTimeout, connectionsCheckingInterval }: Patience
) {
  const timed = new WeakSet<Socket>()
  const checking = setInterval(() => {
    for (const socket of open) {
      // Node winds it up whenever a part is taken in, and destroys the socket when it has run out. A time that somebody
      // else has set is theirs.
      if (socket.writableLength > 0 && !socket.timeout) {
        socket.setTimeout(unreadTimeout)
        timed.add(socket)
      } else if (socket.writableLength === 0 && timed.delete(socket) && socket.timeout === unreadTimeout) {
        socket.setTimeout(0)
      }
    }
  }, connectionsCheckingInterval)
  checking.unref()
  server.once('close', () => clearInterval(checking))
}
