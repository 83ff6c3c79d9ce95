import type { Middleware } from 'koa'
import type { Span, Tracing } from '../../telemetry/tracing.js'
import { isHealthPath, routeOf } from './measure.js'
import { wasSent } from './was-sent.js'

// RFC 9110 section 9.3 and RFC 5789. A client can invent any number of other methods.
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/**
 * Starts a span for every request except health probes, and continues the trace of the client. The query is not recorded,
 * because it contains codes and states.
 */
export function trace(tracing: Tracing): Middleware {
  return function trace(ctx, next) {
    const { path } = ctx
    if (isHealthPath(path)) return next()
    const method = METHODS.has(ctx.method) ? ctx.method : '_OTHER'
    const attributes = { 'http.request.method': method, 'url.path': path, 'url.scheme': ctx.protocol }
    const span = tracing.start(method, 'server', attributes, ctx.req.headers)
    ctx.state.traceId = span.traceId
    ctx.res.once('close', () => {
      const route = routeOf(ctx)
      span.rename(`${method} ${route}`)
      span.set({ 'platform_auth.route': route, 'platform_auth.proxy_rule': ctx.state.proxyRule })
      endWithStatus(span, ctx.headerSent ? ctx.res.statusCode : undefined, wasSent(ctx))
    })
    return tracing.within(span, next)
  }
}

/**
 * Ends the span of a request to this server.
 * @param status undefined if the client got no status
 */
export function endWithStatus(span: Span, status: number | undefined, wasSent: boolean): void {
  span.set({ 'http.response.status_code': status })
  if (!wasSent) span.end('aborted')
  else span.end(status !== undefined && status >= 500 ? String(status) : undefined)
}
