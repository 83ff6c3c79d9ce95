import type { Middleware } from 'koa'
import { HEALTH_ROUTES } from '../../config/urls.js'
import type { Services } from '../../services.js'

/**
 * `/healthz` responds with 200 while the process runs. `/readyz` responds with 200 while the server accepts requests
 * and 503 during shutdown. An outage of the identity provider or of Redis does not change these responses, because load
 * balancers should still send requests to this server. `/readyz` also reports which store is in use.
 * @example app.use(health(services))
 */
export function health({ shutdown, storeStatus }: Services): Middleware {
  return function health(ctx, next) {
    const isHealthz = ctx.path === HEALTH_ROUTES.healthz
    if (!isHealthz && ctx.path !== HEALTH_ROUTES.readyz) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next()
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    const draining = !isHealthz && shutdown.isDraining()
    ctx.status = draining ? 503 : 200
    ctx.body = isHealthz ? { status: 'ok' } : { status: draining ? 'draining' : 'ready', store: storeStatus() }
    return undefined
  }
}
