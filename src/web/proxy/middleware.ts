/**
 * The API proxy. It forwards requests to an API and adds the access token of the session. It forwards only requests
 * that a proxy rule lists. This module is loaded only if there is a proxy rule.
 *
 * - `routes`, `forwardable` and `readings`: the rule of a request, and whether its path belongs to this rule only
 * - `forward`: the queue and its limits; `exchange`: one request and its response
 * - `request-headers`, `request-body`, `response-headers`: what is forwarded
 * - `upstream`, `upstream-connections`, `traced-upstreams`: sending with undici, the connections, and the spans
 * - `upstream-failure`: the error responses
 */
import type { Middleware } from 'koa'
import { outboundProxy } from '../../config/outbound-proxy.js'
import { invalidRequest, methodNotAllowed } from '../errors/http-error.js'
import { checkOrigin } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { notesOf } from '../request/request.js'
import { setDefaultHeaders } from '../request/response-head.js'
import { createRequireTokens } from '../routes/require-tokens.js'
import { createForward } from './forward.js'
import { createRoutes } from './routes.js'
import { tracedUpstreams } from './traced-upstreams.js'
import { createUpstreams } from './upstream.js'
import { tooLarge } from './upstream-failure.js'

const CONNECT_TIMEOUT_MS = 10_000

export function proxy(services: Services): Middleware {
  const { config, site, shutdown, tracing } = services
  const { rules, maxBodyBytes, csrfHeader } = config.apiProxy
  const findRoute = createRoutes(rules, site.origin)
  const plainUpstreams = createUpstreams({ connectTimeoutMs: CONNECT_TIMEOUT_MS, proxyFor: outboundProxy })
  const upstreams = tracing ? tracedUpstreams(plainUpstreams, tracing) : plainUpstreams
  shutdown.hooks.onClose(() => upstreams.close())
  const forward = createForward(services, findRoute, upstreams)
  const refreshSession = createRequireTokens(services)

  return function proxy(ctx, next) {
    // Other middleware may have rewritten `ctx.url`. The rules are applied to the original target, because the original
    // target is forwarded.
    const route = findRoute(ctx.method, ctx.originalUrl)
    if (!route) return next()
    if (route.kind === 'inexact') {
      throw invalidRequest(`The URL of this request cannot be forwarded, because ${route.reason}.`)
    }
    if (route.kind === 'wrongMethod') throw methodNotAllowed(route.allow)
    notesOf(ctx).route = route.rule.route
    checkOrigin(ctx, route.rule.acceptsLinks ? 'proxy' : 'proxyWithoutLinks', { publicOrigin: site.origin, csrfHeader })
    if (Number(ctx.req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes)
    setDefaultHeaders(ctx, PROTECTIVE_HEADERS)
    return refreshSession(ctx, () => forward(ctx, route))
  }
}

// They protect the responses that this server creates itself, such as 401.
const PROTECTIVE_HEADERS = {
  'Cache-Control': 'private, no-store',
  Vary: 'Cookie',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin'
}
