/** What never became a request: answered in the same form as every other error, and the connection ended. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Connections } from './connections.js'

type Answer = readonly [status: string, description: string]

const MALFORMED: Answer = ['400 Bad Request', 'The request is not well-formed HTTP.']
const BY_CODE: Readonly<Record<string, Answer>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers pass 32 KiB.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time.']
}

// Time enough to read why. Cutting at once may take the answer back; waiting for the client to hang up may last for ever.
const LINGER_MS = 1000

export function answerClientErrors(server: Server, connections: Connections, log: Logger): void {
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    // Whatever is written while another answer is on its way would stand in the middle of that one.
    if (!socket.writable || error.code === 'ECONNRESET' || connections.isAnswering(socket)) {
      socket.destroy()
      return
    }
    const [status, description] = BY_CODE[error.code ?? ''] ?? MALFORMED
    log.info({ event: 'client_error', status: Number(status.slice(0, 3)), code: error.code }, 'request refused')
    socket.end(answerOf(status, description))
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  })
}

function answerOf(status: string, description: string): string {
  const body = JSON.stringify({ error: 'invalid_request', error_description: description })
  const head = [
    `HTTP/1.1 ${status}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff'
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
