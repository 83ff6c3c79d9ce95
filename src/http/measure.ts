import type { Context, Middleware } from 'koa'
import type { Metrics } from '../metrics/metrics.js'
import { AUTH_PATH, isAuthPath } from './auth-routes.js'
import { wasSent } from './was-sent.js'

const ROUTES = new Set(['login', 'callback', 'logout', 'profile', 'token'])

/** Counts and times every request by route and status. */
export function measure(metrics: Pick<Metrics, 'requestEnded'>): Middleware {
  return function measure(ctx, next) {
    const started = performance.now()
    ctx.res.once('close', () => {
      // 499 as proxies have it: the client left before there was an answer.
      const status = wasSent(ctx) ? ctx.res.statusCode : 499
      metrics.requestEnded(routeOf(ctx), status, (performance.now() - started) / 1000)
    })
    return next()
  }
}

// From a short list: a label taken from the path would grow with whatever people type.
function routeOf({ path, status, state }: Context): string {
  if (state.proxyRule !== undefined) return 'proxy'
  if (path === '/healthz' || path === '/readyz') return 'health'
  if (!isAuthPath(path)) return status < 400 ? 'static' : 'other'
  const name = path.slice(AUTH_PATH.length + 1)
  return ROUTES.has(name) ? name : 'other'
}
