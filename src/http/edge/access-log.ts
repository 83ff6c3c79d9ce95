import type { Middleware } from 'koa'
import { isHealthPath } from './measure.js'
import { type RequestLog, requestId } from './request.js'
import { wasSent } from './was-sent.js'

// Matches an IP address, with or without a port or a zone. The address may come from a header that the client wrote. If
// that header has another form, the address of the connection is logged instead.
const ADDRESS = /^[\w.:%[\]-]{1,64}$/

/**
 * Writes one log line for each request, after its response was sent or its client disconnected. The query is not
 * logged, because it contains codes and states. Probes ask for the health routes every few seconds, so a request for them
 * is logged only if it fails.
 * @example app.use(accessLog(createRequestLog(log)))
 */
export function accessLog(requestLog: RequestLog): Middleware {
  return function accessLog(ctx, next) {
    const started = performance.now()
    // Read these values now, because Node does not know the address of the client after the connection has closed.
    const { method, path, ip } = ctx
    const peer = ctx.req.socket.remoteAddress
    ctx.set('X-Request-Id', requestId(ctx))
    ctx.res.once('close', () => {
      const isAnswered = wasSent(ctx)
      if (isHealthPath(path) && isAnswered && ctx.res.statusCode < 400) return
      const fields = {
        event: 'request',
        method,
        path,
        // If no headers were sent, the client got no status. The status in `ctx` would then be Koa's initial 404.
        ...(ctx.headerSent && { status: ctx.res.statusCode }),
        aborted: !isAnswered,
        // For proxied requests: the number of the proxy rule, and the time until the upstream had sent its response
        // headers.
        ...(ctx.state.proxyRule !== undefined && { proxy_rule: ctx.state.proxyRule }),
        ...(ctx.state.upstreamMs !== undefined && { upstream_ms: ctx.state.upstreamMs }),
        duration_ms: Math.round(performance.now() - started),
        client: ADDRESS.test(ip) ? ip : peer
      }
      requestLog(ctx).info(fields, 'request')
    })
    return next()
  }
}
