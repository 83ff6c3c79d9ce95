import type { Middleware } from 'koa'
import { type RequestLog, requestId } from './request.js'

/**
 * One line a request, once it has been answered or given up. The path comes without its query: on these routes that is
 * where codes and states are.
 */
export function accessLog(requestLog: RequestLog): Middleware {
  return function accessLog(ctx, next) {
    const started = performance.now()
    ctx.set('X-Request-Id', requestId(ctx))
    ctx.res.once('close', () => {
      const { method, path, ip } = ctx
      const fields = {
        event: 'request',
        method,
        path,
        status: ctx.res.statusCode,
        aborted: !ctx.res.writableFinished,
        duration_ms: Math.round(performance.now() - started),
        client: ip
      }
      requestLog(ctx).info(fields, 'request')
    })
    return next()
  }
}
