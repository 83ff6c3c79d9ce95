import type { Middleware } from 'koa'
import { HEALTH_ROUTES } from '../../config/types/urls.js'
import type { Services } from '../middleware-services.js'

/**
 * `/healthz` responds with 200 while the process runs. `/readyz` responds with 200 while the server accepts requests,
 * and with 503 during shutdown and until the first connection to Redis, but at most 30 seconds after the start. A later outage
 * of Redis, or one of the identity provider, does not change these responses, because load balancers should still send
 * requests to this server. `/readyz` also reports whether Redis can be used.
 * @example app.use(health(services))
 */
export function health({ shutdown, redisStatus, isStarting }: Services): Middleware {
  return function health(ctx, next) {
    const isHealthz = ctx.path === HEALTH_ROUTES.healthz
    const isHealthRoute = isHealthz || ctx.path === HEALTH_ROUTES.readyz
    if (!isHealthRoute || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    if (isHealthz) {
      ctx.body = { status: 'ok' }
      return undefined
    }
    const status = shutdown.isDraining() ? 'draining' : isStarting() ? 'starting' : 'ready'
    ctx.status = status === 'ready' ? 200 : 503
    ctx.body = { status, redis: redisStatus() }
    return undefined
  }
}
