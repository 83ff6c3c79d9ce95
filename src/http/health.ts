import type { Middleware } from 'koa'
import type { Coordination } from '../coordination/coordination.js'

export const HEALTH_PATHS: readonly string[] = ['/healthz', '/readyz']

export interface HealthParts {
  readonly isDraining: () => boolean
  readonly coordination: Coordination
}

/**
 * `/healthz` answers 200 while the process runs. `/readyz` answers 200 while the server accepts requests and 503 during
 * shutdown. Neither depends on the identity provider or on Redis, because their outage must not remove this server from
 * the load balancer. `/readyz` names the store that is in use.
 */
export function health({ isDraining, coordination }: HealthParts): Middleware {
  return function health(ctx, next) {
    if (!HEALTH_PATHS.includes(ctx.path) || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    const isHealthz = ctx.path === '/healthz'
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    const draining = !isHealthz && isDraining()
    ctx.status = draining ? 503 : 200
    ctx.body = isHealthz
      ? { status: 'ok' }
      : { status: draining ? 'draining' : 'ready', store: coordination.status().store }
    return undefined
  }
}
