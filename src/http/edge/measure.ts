import type { Context, Middleware } from 'koa'
import { AUTH_ROUTES, HEALTH_ROUTES, isAuthPath } from '../../config/routes.js'
import type { Metrics } from '../../metrics/metrics.js'
import { wasSent } from './was-sent.js'

const NAMES = new Map<string, string>([
  ...Object.entries(AUTH_ROUTES).map(([name, path]) => [path, name] as const),
  ...Object.values(HEALTH_ROUTES).map(path => [path, 'health'] as const)
])

/**
 * Counts and times every request by route and status.
 * @example app.use(measure(metrics))
 */
export function measure(metrics: Pick<Metrics, 'requestEnded'>): Middleware {
  return function measure(ctx, next) {
    const started = performance.now()
    ctx.res.once('close', () => {
      // Proxies use the status 499 for a client that disconnected before the response was sent.
      const status = wasSent(ctx) ? ctx.res.statusCode : 499
      metrics.requestEnded(routeOf(ctx), status, (performance.now() - started) / 1000)
    })
    return next()
  }
}

export function isHealthPath(path: string): boolean {
  return NAMES.get(path) === 'health'
}

/** Returns one of a few names. If paths were labels, clients could create any number of time series. */
export function routeOf({ path, status, state }: Context): string {
  if (state.proxyRule !== undefined) return 'proxy'
  const name = NAMES.get(path)
  if (name !== undefined) return name
  return status < 400 && !isAuthPath(path) ? 'static' : 'other'
}
