/**
 * Responds to requests that are malformed, have headers that are too large, or do not arrive in time. The body has the
 * same format as that of every other error response, and the connection is closed.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { ErrorCode } from '../errors/error-codes.js'
import { requestIdOf } from '../request/request.js'
import type { Pipelining } from './arrivals.js'

type RawResponse = readonly [status: string, error: ErrorCode, description: string]

const MALFORMED: RawResponse = ['400 Bad Request', 'invalid_request', 'The request is not well-formed HTTP.']
const BY_CODE: Readonly<Record<string, RawResponse>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'headers_too_large', 'The headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'The request did not arrive in time.']
}

// The client has this time to read the response, because destroying the socket immediately could discard the response.
// Without a time limit, a client that never closes its side would keep the socket open.
const LINGER_MS = 1000

export function respondToClientErrors(server: Server, pipelining: Pipelining, log: Logger): void {
  const rejected = new WeakSet<Socket>()

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    // Node emits the event again if more data arrives while earlier responses are still being sent, so a socket that
    // was already rejected is ignored.
    if (rejected.has(socket)) return
    rejected.add(socket)
    const [status, code, description] = BY_CODE[error.code ?? ''] ?? MALFORMED
    // Scanners send such requests all the time, so they are not in a default log.
    const requestId = requestIdOf(undefined)
    const fields = { request_id: requestId, status: Number(status.slice(0, 3)), error_code: code, reason: error.code }
    log.debug({ event: 'client_error', ...fields }, 'request rejected')
    pipelining.rejectInTurn(socket, () => {
      if (socket.writable) socket.end(responseOf(status, code, description, requestId))
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    })
  })
}

function responseOf(status: string, error: ErrorCode, description: string, requestId: string): string {
  const body = JSON.stringify({ error, error_description: description, request_id: requestId })
  const head = [
    `HTTP/1.1 ${status}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
