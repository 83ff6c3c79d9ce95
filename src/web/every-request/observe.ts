/**
 * Records each request when it ends, in the access log, the metrics and the spans of tracing. Also logs responses that
 * are aborted.
 */
import type { ReadStream } from 'node:fs'
import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import type { Metrics } from '../../base/metrics.js'
import type { Span, Tracing } from '../../base/tracing.js'
import { AUTH_ROUTES, HEALTH_ROUTES, isAuthPath } from '../../config/types/urls.js'
import { notesOf, requestLog } from '../request/request.js'
import { wasExecuted } from '../request/session-status.js'

// Matches an IP address, with or without a port or a zone. With `log.trustForwardedFor`, the address comes from a header that the
// client may have written. If the value does not match, the IP address of the connection is logged instead.
const IP_ADDRESS = /^[\w.:%[\]-]{1,64}$/

/**
 * Writes one log line for each request, after its response was sent or its client disconnected. The query is not
 * logged, because it contains codes and states. Probes request the health routes every few seconds, so such a request
 * is logged only if it fails.
 * @example app.use(accessLog(log))
 */
export function accessLog(log: Logger): Middleware {
  return function accessLog(ctx, next) {
    const started = performance.now()
    // These values are read now, because Node does not know the IP address of the client after the connection has
    // closed.
    const { method, path, ip } = ctx
    const peer = ctx.req.socket.remoteAddress
    ctx.res.once('close', () => {
      const isSent = wasSent(ctx)
      if (HEALTH_PATHS.has(path) && isSent && ctx.res.statusCode < 400) return
      const { upstreamHeaderMs } = notesOf(ctx)
      const fields = {
        event: 'request',
        method,
        path,
        // If no headers were sent, the client got no status, and the status in `ctx` is only Koa's initial 404.
        ...(ctx.headerSent && { status: ctx.res.statusCode }),
        aborted: !isSent,
        ...errorFields(ctx),
        route: routeOf(ctx),
        ...(upstreamHeaderMs !== undefined && { upstream_header_ms: upstreamHeaderMs }),
        duration_ms: Math.round(performance.now() - started),
        client_ip: IP_ADDRESS.test(ip) ? ip : peer
      }
      requestLog(ctx, log).info(fields, 'request')
    })
    return next()
  }
}

/** An error response: its code, and what caused it if the code does not say it. */
function errorFields(ctx: Context) {
  const { error, reason } = notesOf(ctx).error ?? {}
  return { ...(error && { error_code: error }), ...(reason && reason !== error && { reason }) }
}

const HEALTH_PATHS = new Set<string>(Object.values(HEALTH_ROUTES))
const OWN_PATHS = new Set<string>([...Object.values(AUTH_ROUTES), ...HEALTH_PATHS])

/**
 * Counts and times every request by route and status.
 * @example app.use(measure(metrics))
 */
export function measure(metrics: Metrics): Middleware {
  return function measure(ctx, next) {
    const started = performance.now()
    ctx.res.once('close', () => {
      // Proxies use the status 499 for a client that disconnected before the response was sent.
      const status = wasSent(ctx) ? ctx.res.statusCode : 499
      const seconds = (performance.now() - started) / 1000
      metrics.observe('http_request_duration_seconds', seconds, { route: routeOf(ctx), code: status })
    })
    return next()
  }
}

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
 * Starts a span for every request except health probes, and continues the trace of the client. The span does not contain the
 * query of the URL, because the query contains codes and states.
 */
export function trace(tracing: Tracing): Middleware {
  return function trace(ctx, next) {
    const { path } = ctx
    if (HEALTH_PATHS.has(path)) return next()
    const method = methodOf(ctx.method)
    const attributes = { 'http.request.method': method, 'url.path': path, 'url.scheme': ctx.protocol }
    const span = tracing.start(method, 'server', attributes, ctx.req.headers)
    notesOf(ctx).traceId = span.traceId
    ctx.res.once('close', () => {
      const route = routeOf(ctx)
      // A group of routes is no `http.route`, and the name of a span contains only the method then.
      if (route.startsWith('/')) {
        span.rename(`${method} ${route}`)
        span.set({ 'http.route': route })
      }
      endSpanWithStatus(span, ctx.headerSent ? ctx.res.statusCode : undefined, wasSent(ctx))
    })
    return tracing.within(span, next)
  }
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
