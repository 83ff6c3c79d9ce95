import type { Middleware } from 'koa'

export interface HealthParts {
  readonly isDraining: () => boolean
}

/**
 * `/healthz`: the process lives. `/readyz`: it wants requests. Neither asks the identity provider: its bad minute must
 * not take this server out of the load balancer.
 */
export function health({ isDraining }: HealthParts): Middleware {
  return async function health(ctx, next) {
    const isHealthz = ctx.path === '/healthz'
    if ((!isHealthz && ctx.path !== '/readyz') || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    const draining = !isHealthz && isDraining()
    ctx.status = draining ? 503 : 200
    ctx.body = { status: isHealthz ? 'ok' : draining ? 'draining' : 'ready' }
  }
}
