/**
 * Responds to requests that are malformed, have headers that are too large, or do not arrive in time. The body has the
 * same format as that of every other error response, and the connection is closed. A browser with too many cookies, or a long URL,
 * gets a page.
 */
import { type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { SentCookie } from '../../pages/index.js'
import { ERRORS, type ErrorCode } from '../errors/error-codes.js'
import type { Services } from '../middleware-services.js'
import { requestIdOf } from '../request/request.js'
import type { Pipelining } from './arrivals.js'

const BY_CODE: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout'
}

// The client has this time to read the response, because destroying the socket immediately could discard the response.
// Without a time limit, a client that never closes its side would keep the socket open.
const LINGER_MS = 1000

type Site = Pick<Services, 'pages' | 'site'>

/** @param site undefined if only programs send requests */
export function respondToClientErrors(server: Server, pipelining: Pipelining, log: Logger, site?: Site): void {
  const rejected = new WeakSet<Socket>()

  server.on('clientError', (error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, stream) => {
    const socket = stream as Socket
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    // Node emits the event again if more data arrives while earlier responses are still being sent, so a socket that
    // was already rejected is ignored.
    if (rejected.has(socket)) return
    rejected.add(socket)
    const code = BY_CODE[error.code ?? ''] ?? 'invalid_request'
    // Scanners send such requests all the time, so they are not in a default log.
    const requestId = requestIdOf(undefined)
    const fields = { request_id: requestId, status: ERRORS[code][0], error_code: code, reason: error.code }
    log.debug({ event: 'client_error', ...fields }, 'request rejected')
    pipelining.rejectInTurn(socket, () => {
      const page = code === 'headers_too_large' && site ? pageOf(site, error.rawPacket, requestId) : undefined
      if (socket.writable) socket.end(page ?? responseOf(code, requestId))
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    })
  })
}

function responseOf(error: ErrorCode, requestId: string): string {
  const body = JSON.stringify({ error, error_description: ERRORS[error][1], request_id: requestId })
  return rawResponse(error, body, requestId, ['Content-Type: application/json; charset=utf-8'])
}

function rawResponse(error: ErrorCode, body: string, requestId: string, lines: readonly string[]): string {
  const [status] = ERRORS[error]
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
    ...lines
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const MAX_LISTED = 10

// With half of the limit of all headers, the URL is the reason, and not the cookies.
const LONG_URL = /^[A-Z]+ \S{16384}/

/**
 * Returns the page for a browser whose cookies or whose URL are too large, or undefined for a program. The request was not parsed, and of
 * a request that arrived in several parts, only the last part is known.
 */
function pageOf({ pages, site }: Site, packet: Buffer | undefined, requestId: string): string | undefined {
  const text = packet?.toString('latin1') ?? ''
  const cookies = LONG_URL.test(text) ? [] : largestCookies(text)
  const [, accept] = /^accept: *(.*)/im.exec(text) ?? []
  if (!(accept?.includes('text/html') ?? cookies.length > 0)) return undefined
  const [, accepted = ''] = /^accept-language: *([\w,;=.* -]{1,200})/im.exec(text) ?? []
  const error = 'headers_too_large'
  const [status, description] = ERRORS[error]
  const language = pages.languageFor(accepted.split(',').map(range => range.split(';')[0]?.trim() ?? ''))
  const shared = {
    requestId: undefined,
    inLogin: false,
    isSignedIn: false,
    canOpenAgain: true,
    signInPath: '',
    // The start page would get the same cookies.
    homePath: cookies.length === 0 && site.hasStartPage ? site.homePath : undefined
  }
  const body = pages.errorPage({ ...shared, status, error, description, cookies }, language)
  return rawResponse(error, body, requestId, [
    'Content-Type: text/html; charset=utf-8',
    `Content-Security-Policy: ${pages.securityPolicy}`,
    'Referrer-Policy: no-referrer'
  ])
}

function largestCookies(text: string): SentCookie[] {
  const [, line = ''] = /^cookie: *([^\r\n]*)/im.exec(text) ?? []
  const cookies = line.split(/; */).map(pair => ({ name: pair.split('=', 1)[0] ?? '', bytes: pair.length }))
  return cookies
    .filter(({ name }) => /^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MAX_LISTED)
}
