/**
 * Records each request when it ends, in the access log, the metrics and the spans of tracing. Also logs responses that
 * are aborted.
 */
import type { ReadStream } from 'node:fs'
import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import type { Span, Tracing } from '../../base/tracing.js'
import { AUTH_ROUTES, HEALTH_ROUTES, isAuthPath } from '../../config/types/urls.js'
import type { Services } from '../middleware-services.js'
import { notesOf, requestLog } from '../request/request.js'
import { wasExecuted } from '../request/session-status.js'

// Matches an IP address, with or without a port or a zone. With `log.trustForwardedFor`, the address comes from a header that the
// client may have written. If the value does not match, the IP address of the connection is logged instead.
const IP_ADDRESS = /^[\w.:%[\]-]{1,64}$/

/**
 * Creates the middleware that records each request after its response was sent or its client disconnected.
 * - The log line does not contain the query, because it contains codes and states. Probes request the health routes every few
 *   seconds, so such a request is logged only if it fails.
 * - Metrics count the request by route and status, with the time that it took.
 * - The span continues the trace of the client, and has no query either. Health probes have no span.
 * @example app.use(observe(services))
 */
export function observe({ config, log, metrics, tracing }: Services): Middleware {
  return function observe(ctx, next) {
    const started = performance.now()
    // These values are read now, because Node does not know the IP address of the client after the connection has
    // closed.
    const { method, path, ip } = ctx
    const peer = ctx.req.socket.remoteAddress
    const isProbe = HEALTH_PATHS.has(path)
    const span = tracing && !isProbe ? startSpan(ctx, tracing) : undefined
    ctx.res.once('close', () => {
      const { statusCode } = ctx.res
      const [route, isSent, ms] = [routeOf(ctx), wasSent(ctx), performance.now() - started]
      // If no headers were sent, the client got no status, and the status in `ctx` is only Koa's initial 404.
      const status = ctx.headerSent ? statusCode : undefined
      // Proxies use the status 499 for a client that disconnected before the response was sent.
      metrics.observe('http_request_duration_seconds', ms / 1000, { route, code: isSent ? statusCode : 499 })
      if (span) endSpan(span, methodOf(method), route, status, isSent)
      if (!config.log.requests || (isProbe && isSent && statusCode < 400)) return
      const { upstreamHeaderMs } = notesOf(ctx)
      const fields = {
        event: 'request',
        method,
        path,
        ...(status !== undefined && { status }),
        aborted: !isSent,
        ...errorFields(ctx),
        route,
        ...(upstreamHeaderMs !== undefined && { upstream_header_ms: upstreamHeaderMs }),
        duration_ms: Math.round(ms),
        client_ip: IP_ADDRESS.test(ip) ? ip : peer
      }
      requestLog(ctx, log).info(fields, 'request')
    })
    return span && tracing ? tracing.within(span, next) : next()
  }
}

function startSpan(ctx: Context, tracing: Tracing): Span {
  const method = methodOf(ctx.method)
  const attributes = { 'http.request.method': method, 'url.path': ctx.path, 'url.scheme': ctx.protocol }
  const span = tracing.start(method, 'server', attributes, ctx.req.headers)
  notesOf(ctx).traceId = span.traceId
  return span
}

function endSpan(span: Span, method: string, route: string, status: number | undefined, isSent: boolean): void {
  // A group of routes is no `http.route`, and the name of a span contains only the method then.
  if (route.startsWith('/')) {
    span.rename(`${method} ${route}`)
    span.set({ 'http.route': route })
  }
  endSpanWithStatus(span, status, isSent)
}

/** An error response: its code, and what caused it if the code does not say it. */
function errorFields(ctx: Context) {
  const { error, reason } = notesOf(ctx).error ?? {}
  return { ...(error && { error_code: error }), ...(reason && reason !== error && { reason }) }
}

const HEALTH_PATHS = new Set<string>(Object.values(HEALTH_ROUTES))
const OWN_PATHS = new Set<string>([...Object.values(AUTH_ROUTES), ...HEALTH_PATHS])

/**
 * Returns the route of a request: the path of a route of this server, the path pattern of a proxy rule, or a group of routes. If
 * all paths were labels, clients could create any number of time series.
 */
function routeOf(ctx: Context): string {
  const { path, status } = ctx
  const { route } = notesOf(ctx)
  if (route !== undefined) return route
  if (OWN_PATHS.has(path)) return path
  return (status < 400 && !isAuthPath(path)) || wasExecuted(ctx) ? 'custom' : 'other'
}

// RFC 9110 section 9.3 and RFC 5789.
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/** Returns the method for a span. A client can invent any number of other methods. */
export function methodOf(method = ''): string {
  return METHODS.has(method) ? method : '_OTHER'
}

/**
 * Ends the span of a request to this server.
 * @param status undefined if the client got no status
 */
export function endSpanWithStatus(span: Span, status: number | undefined, wasSent: boolean): void {
  span.set({ 'http.response.status_code': status })
  if (!wasSent) span.end('aborted')
  else span.end(status !== undefined && status >= 500 ? String(status) : undefined)
}

/**
 * True if the whole response was sent, as far as Node can tell. Node reports the end of a response slightly late, and a
 * client that knows the length may disconnect before that. So a file that was read to its end counts as sent.
 */
function wasSent({ res, body, length }: Context): boolean {
  const { bytesRead } = (body ?? {}) as Partial<ReadStream>
  return res.writableFinished || (bytesRead !== undefined && bytesRead === length)
}

// Error codes for a client that disconnected during a response.
const CLIENT_DISCONNECTED = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/**
 * Creates the listener for Koa's `error` event. It logs a response that fails while it is being sent, because the
 * `errors` middleware has finished by then. Without a listener, Koa would print a stack trace whenever a client stops
 * loading a page.
 */
export function brokenResponses(log: Logger) {
  // Koa reports the same failure twice, for the body and for the connection, but the failure must be logged only once.
  const logged = new WeakSet<Context>()

  return function brokenResponse(error: NodeJS.ErrnoException, ctx: Context): void {
    if (logged.has(ctx)) return
    logged.add(ctx)
    const level = CLIENT_DISCONNECTED.has(error.code ?? '') ? 'debug' : 'error'
    requestLog(ctx, log)[level]({ event: 'response_broken', err: error }, 'sending the response failed')
  }
}
