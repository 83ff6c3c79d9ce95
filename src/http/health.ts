import type { Middleware } from 'koa'
import type { Coordination } from '../coordination/coordination.js'

export interface HealthParts {
  readonly isDraining: () => boolean
  readonly coordination: Coordination
}

/**
 * `/healthz`: the process lives. `/readyz`: it wants requests. Neither asks the identity provider: its bad minute must
 * not take this server out of the load balancer. Nor does a Redis that is away, but `/readyz` says which store is in use.
 */
export function health({ isDraining, coordination }: HealthParts): Middleware {
  return function health(ctx, next) {
    const isHealthz = ctx.path === '/healthz'
    if ((!isHealthz && ctx.path !== '/readyz') || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    const draining = !isHealthz && isDraining()
    ctx.status = draining ? 503 : 200
    ctx.body = isHealthz
      ? { status: 'ok' }
      : { status: draining ? 'draining' : 'ready', store: coordination.status().store }
    return undefined
  }
}
