/**
 * The connections of a server: which answers are under way on them, and how they end without cutting one short. Node's
 * own `server.close()` waits for a connection as long as it is kept alive, or as long as nothing comes on it at all.
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

export function watchConnections(server: Server): Connections {
  const open = new Set<Socket>()
  const answers = new Set<ServerResponse>()
  let draining = false
  const answersOn = (socket: Socket) => [...answers].filter(({ req }) => req.socket === socket)

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  // Before the handler that answers: it may send the headers at once.
  server.prependListener('request', ({ socket }, response) => {
    answers.add(response)
    if (draining) response.shouldKeepAlive = false
    response.once('close', () => {
      answers.delete(response)
      // Its headers may have gone, and promised to keep the connection, before anyone knew of an end.
      if (draining && answersOn(socket).length === 0) socket.end()
    })
  })

  return {
    isAnswering(socket) {
      return answersOn(socket).some(({ headersSent }) => headersSent)
    },
    drain() {
      draining = true
      for (const response of answers) response.shouldKeepAlive = false
    },
    end(graceMs) {
      return new Promise(resolve => {
        const deadline = setTimeout(() => server.closeAllConnections(), graceMs)
        server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
        // Browsers connect ahead of need, and Node counts a connection on which nothing came yet among the busy.
        for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
      })
    }
  }
}
