import type { Middleware } from 'koa'
import { type RequestLog, requestId } from './request.js'
import { wasSent } from './was-sent.js'

// Addresses, with a port or a zone. A proxy that passes on what it was sent would let anyone write anything here.
const ADDRESS = /^[\w.:%[\]-]{1,64}$/

/**
 * One line a request, once it has been answered or given up. The path comes without its query: on these routes that is
 * where codes and states are.
 */
export function accessLog(requestLog: RequestLog): Middleware {
  return function accessLog(ctx, next) {
    const started = performance.now()
    // Read now: once the connection is gone, nobody knows whose it was.
    const { method, path, ip } = ctx
    const peer = ctx.req.socket.remoteAddress
    ctx.set('X-Request-Id', requestId(ctx))
    ctx.res.once('close', () => {
      const fields = {
        event: 'request',
        method,
        path,
        // Koa begins with 404; who left before the answer was given none.
        ...(ctx.headerSent && { status: ctx.res.statusCode }),
        aborted: !wasSent(ctx),
        // Set for proxied requests: their rule, and how long the head of the upstream's answer took.
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
