/**
 * Forward-auth: before a gateway such as nginx, Caddy or Traefik forwards a request, it asks this server whether the
 * request has a session. The response contains the internal token, which is the access token for use on servers.
 * Browsers must not get this token, so forward-auth has a separate port.
 */

import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { closeServer, listen } from '../../base/listener.js'
import { decodings, mergePath, readAsText } from '../../base/path-readings.js'
import type { Span } from '../../base/tracing.js'
import { hasBody, ignoreStops, inTurn } from '../every-request/arrivals.js'
import { respondToClientErrors } from '../every-request/client-errors.js'
import { CLIENT_LIMITS, type ClientLimits } from '../every-request/connections.js'
import { endSpanWithStatus, methodOf } from '../every-request/observe.js'
import { type BrowserRequest, rejectionOf } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { requestIdOf } from '../request/request.js'
import { refusalOf } from '../request/session-refusal.js'
import type { SessionStatus } from '../request/session-status.js'

interface Decision {
  readonly status: 200 | 401 | 403 | 500 | 503
  readonly accessToken?: string
  readonly retryAfterSeconds?: number
  /** The reason for a status of 403, for the log. */
  readonly reason?: string
}

// The limit for headers is higher than on the public port, because gateways add headers to those of the browser.
const LIMITS = { ...CLIENT_LIMITS, maxHeaderSize: 64 * 1024 }

export type ForwardAuthServer = Awaited<ReturnType<typeof listenForGateways>>

/**
 * Starts the listener. If the port cannot be used, rejects with Node's error, which then has the property `listener:
 * 'forwardAuth'`.
 * @param limits shorter time limits, for tests
 * @example const gateways = await listenForGateways(services, { port: 4180, host: '127.0.0.1' })
 */
export async function listenForGateways(
  services: Services,
  { port, host }: { readonly port: number; readonly host: string | undefined },
  limits: Partial<ClientLimits> = {}
) {
  const respond = forwardAuth(services)
  const keepAliveTimeout = services.config.keepAliveSeconds * 1000
  const gatewayLimits = { ...LIMITS, keepAliveTimeout, ...limits }
  // Node's own responses to requests without a host, with an unknown expectation or with a syntax error have no request id.
  const pipelining = inTurn(respond, () =>
    services.log.debug({ event: 'client_error', reason: 'too_many_pipelined' }, 'connection closed')
  )
  const server = http.createServer({ ...gatewayLimits, requireHostHeader: false }, pipelining.listener)
  server.on('checkExpectation', pipelining.listener)
  ignoreStops(server, gatewayLimits)
  respondToClientErrors(server, pipelining, services.log)
  return {
    port: await listen(server, { port, host, listener: 'forwardAuth' }),
    /**
     * Stops accepting connections. Resolves when all requests have ended. After `graceMs` milliseconds, destroys the connections that
     * are still open.
     */
    close: (graceMs: number) => closeServer(server, graceMs)
  }
}

/**
 * Responds to every request, whatever its path and method are. The body is empty, and the status is one of these:
 * - 200 with `Authorization: Bearer <internal token>` if there is a session
 * - 401 with `Session-Status: signed-out` if there is no session, or if the session has ended
 * - 403 if a page of another site may have caused the request, if a browser has requested the URL that the gateway uses
 *   for forward-auth, or if the account is no longer allowed
 * - 500 after an unexpected error
 * - 503 with `Session-Status: retry` and `Retry-After` if the session cannot be read or refreshed now
 *
 * Every response has an `Authorization` header, which is empty without a token, so that a gateway always replaces the
 * value that a client sent. No response sets a cookie, because a gateway might not forward all cookies of a response.
 */
function forwardAuth(services: Services): (request: IncomingMessage, response: ServerResponse) => void {
  const { config, refreshes, mode, sessions, site, sessionCookie, metrics, log, tracing } = services

  async function decide(request: IncomingMessage, requestLog: () => Logger): Promise<Decision> {
    const { headers } = request
    const reason =
      whyNotFromGateway(request) ??
      rejectionOf({ methods: methodsOf(request), headers }, 'forwardAuth', { publicOrigin: site.origin })
    if (reason !== undefined) return { status: 403, reason }
    const session = sessionCookie.open(headers.cookie ?? '')
    if (!session) return { status: 401 }
    const current = await refreshes.current(session, requestLog)
    if (current.kind === 'live') {
      return { status: 200, accessToken: mode.tokens(current.record.fields, sessions.now()).internal.access_token }
    }
    const refusal = refusalOf(current, sessions.now())
    return refusal.status === 403 ? { status: 403, reason: 'account_not_allowed' } : refusal
  }

  async function respond(request: IncomingMessage, response: ServerResponse, span?: Span): Promise<void> {
    const started = performance.now()
    // A body is ignored. It is read, because a gateway that sends one may wait until it is read.
    request.resume()
    const requestId = requestIdOf(request.headers['x-request-id'])
    let child: Logger | undefined
    const requestLog = () => {
      child ??= log.child({ request_id: requestId, ...(span && { trace_id: span.traceId }) })
      return child
    }
    const decision = await decide(request, requestLog).catch((err: unknown): Decision => {
      requestLog().error({ event: 'request_failed', status: 500, error_code: 'server_error', err }, 'request failed')
      return { status: 500 }
    })
    const { status, accessToken, retryAfterSeconds, reason } = decision
    metrics.count('forward_auth_requests_total', { code: status })
    if (reason === 'open_location') {
      const message = 'browsers can open the URL that the gateway uses for forward-auth; make that location internal'
      requestLog().error({ event: 'forward_auth_exposed' }, message)
    }
    if (config.log.requests) {
      const duration_ms = Math.round(performance.now() - started)
      requestLog().info({ event: 'forward_auth', status, ...(reason && { reason }), duration_ms }, 'forward-auth')
    }
    // Node parses a body that came with the headers only after the promises of this turn.
    if (hasBody(request)) await nextTurn()
    const isBodyMissing = hasBody(request) && !request.complete
    // Node needs less time for a list, in which each name is followed by its value.
    response.writeHead(status, [
      ...['Content-Length', '0', 'Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'],
      ...['X-Request-Id', requestId, 'Authorization', accessToken === undefined ? '' : `Bearer ${accessToken}`],
      ...(isBodyMissing ? ['Connection', 'close'] : []),
      ...(status === 401 ? ['Session-Status', 'signed-out' satisfies SessionStatus] : []),
      ...(status === 503 ? ['Session-Status', 'retry' satisfies SessionStatus] : []),
      ...(retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)])
    ])
    if (isBodyMissing) closeInStages(request.socket)
    response.end()
  }

  return function forwardAuth(request, response) {
    if (!tracing) {
      void respond(request, response)
      return
    }
    const method = methodOf(request.method)
    const span = tracing.start(`${method} forward-auth`, 'server', { 'http.request.method': method }, request.headers)
    response.once('close', () =>
      endSpanWithStatus(span, response.headersSent ? response.statusCode : undefined, response.writableFinished)
    )
    void tracing.within(span, () => respond(request, response, span))
  }
}

// A gateway has this time to send the rest of a body.
const LINGER_MS = 5000

/**
 * Lets Node close the connection in stages after the response (RFC 9112 section 9.6), for a request whose body has not arrived. nginx
 * announces the body of the browser's request and does not send it, unless its configuration removes Content-Length. On a connection
 * that stays open, the next request, which may be of another user, would be read as this body.
 */
function closeInStages(socket: Socket): void {
  // Node's function destroys the connection when the response has been sent. A gateway that is still sending would get an
  // error, and could lose the response.
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

/**
 * Returns the methods of the browser's request, which the gateway sends in headers. Without such a header, returns the
 * method of the gateway's own request.
 */
function methodsOf({ method = '', headers }: IncomingMessage): BrowserRequest['methods'] {
  const named = [headers['x-forwarded-method'], headers['x-original-method']].filter(name => name !== undefined)
  return named.length > 0 ? named.map(String) : [method]
}

// Comparing a longer path would take long, and the paths of pages and APIs are shorter.
const MAX_PATH_LENGTH = 4096

/**
 * Returns `open_location` if a browser requested the URL that the gateway itself uses for forward-auth. If browsers can
 * open this URL, every page can read the internal token. In nginx, browsers can open this URL if its location lacks
 * `internal;`. Returns `long_path` if a path is too long to be compared.
 *
 * A gateway may decode the path of a request and merge its slashes before it selects the location. Therefore every
 * interpretation of the paths is compared. The path `/` is not checked, because a request for the start page has the
 * same path if a gateway uses `/` for forward-auth.
 */
export function whyNotFromGateway({
  url = '/',
  headersDistinct
}: Pick<IncomingMessage, 'url' | 'headersDistinct'>): 'open_location' | 'long_path' | undefined {
  const own = pathOf(url)
  if (own.length > MAX_PATH_LENGTH) return 'long_path'
  const ours = new Set(readingsOf(own))
  ours.delete('/')
  if (ours.size === 0) return undefined
  const named = [...(headersDistinct['x-forwarded-uri'] ?? []), ...(headersDistinct['x-original-uri'] ?? [])]
  const forwarded = named.map(pathOf)
  if (forwarded.some(({ length }) => length > MAX_PATH_LENGTH)) return 'long_path'
  const isOurs = forwarded.some(path => readingsOf(path).some(reading => ours.has(reading)))
  return isOurs ? 'open_location' : undefined
}

/** Returns all paths that a gateway may see in the path of a request. */
function readingsOf(path: string): readonly string[] {
  return decodings(path).map(bytes => mergePath(readAsText(bytes)))
}

/** Returns the path of a request target, without the host and the query. */
function pathOf(target: string): string {
  return target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*/s, '')
}
