import type { Middleware } from 'koa'
import { type RequestLog, requestId } from './request.js'
import { wasSent } from './was-sent.js'

// Accepts addresses, with a port or a zone. If a proxy forwards the header of the client unchecked, its value could be any
// text.
const ADDRESS = /^[\w.:%[\]-]{1,64}$/

/**
 * Writes one log line for each request, when its response has been sent or its client has disconnected. The path is logged
 * without its query, because the query contains codes and states.
 */
export function accessLog(requestLog: RequestLog): Middleware {
  return function accessLog(ctx, next) {
    const started = performance.now()
    // These values must be read now. After the connection has closed, Node no longer knows the address of the client.
    const { method, path, ip } = ctx
    const peer = ctx.req.socket.remoteAddress
    ctx.set('X-Request-Id', requestId(ctx))
    ctx.res.once('close', () => {
      const fields = {
        event: 'request',
        method,
        path,
        // Koa's initial status is 404. A client that disconnected before the response got no status at all.
        ...(ctx.headerSent && { status: ctx.res.statusCode }),
        aborted: !wasSent(ctx),
        // Proxied requests have the number of their rule, and the time until the head of the upstream's response came.
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
