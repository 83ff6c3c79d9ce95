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

export function watchConnections(server: Server): Connections {
  const open = new Set<HttpSocket>()
  let lastHasClosed = () => {}

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
