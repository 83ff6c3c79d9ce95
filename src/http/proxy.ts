/**
 * The API proxy: forwards the requests that a rule lists to an API, with the token of the session, and nothing else. Loaded only
 * where there is a rule.
 */
import type { Context, Middleware } from 'koa'
import { basePathOf } from '../config/addresses.js'
import { parseRules } from '../config/proxy-rules.js'
import type { Config } from '../config/settings.js'
import type { Coordination } from '../coordination/coordination.js'
import type { Metrics } from '../metrics/metrics.js'
import { createRoutes } from '../proxy/routes.js'
import { createUpstreams } from '../proxy/upstream.js'
import { createCsrfCheck } from './csrf.js'
import type { Ending } from './ending.js'
import { HttpError, methodNotAllowed } from './errors.js'
import { createForward, tooLarge } from './forward.js'
import type { RequestLog } from './request.js'

export interface ProxyParts {
  readonly config: Pick<Config, 'proxy' | 'platform'>
  readonly session: Middleware
  readonly requireTokens: Middleware
  readonly coordination: Coordination
  readonly ending: Ending
  readonly metrics: Pick<Metrics, 'upstreamAnswered' | 'proxiedAnswerBroken'>
  readonly requestLog: RequestLog
}

const CONNECT_TIMEOUT_MS = 10_000

export function proxy(parts: ProxyParts): Middleware {
  const { config, session, requireTokens, ending } = parts
  const { routes, maxBodyBytes, csrfHeader } = config.proxy
  const publicOrigin = new URL(config.platform.callbackUrl).origin
  const findRoute = createRoutes(parseRules(routes).rules, publicOrigin)
  const checkCsrf = createCsrfCheck({ publicOrigin, csrfHeader })
  const upstreams = createUpstreams({ connectTimeoutMs: CONNECT_TIMEOUT_MS })
  ending.onClose(() => upstreams.close())
  const basePath = basePathOf(config.platform.callbackUrl)
  const forward = createForward({ ...parts, ...config.proxy, findRoute, basePath, upstreams })

  return function proxy(ctx, next) {
    // The target as it was sent: other layers may have rewritten `ctx.url`, and what is matched must be what is forwarded.
    const route = findRoute(ctx.method, ctx.originalUrl)
    if (!route) return next()
    if (route.kind === 'inexact') {
      throw new HttpError(400, 'invalid_request', `The address of this request cannot be forwarded: ${route.reason}.`)
    }
    if (route.kind === 'wrongMethod') throw methodNotAllowed(route.allow)
    ctx.state.proxyRule = route.rule.number
    checkCsrf(ctx)
    if (Number(ctx.req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes)
    protect(ctx)
    return session(ctx, () => requireTokens(ctx, () => forward(ctx, route)))
  }
}

// For the answers of this server itself, such as 401. An upstream's answer has its own Cache-Control.
function protect({ res }: Context): void {
  res.setHeader('Cache-Control', 'private, no-store')
  res.setHeader('Vary', 'Cookie')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Cross-Origin-Resource-Policy', 'same-origin')
}
