/** The Koa application. It lists the middleware that every request passes, outermost first. */
import Koa, { type Context, type Middleware } from 'koa'
import { noMetrics } from './base/metrics.js'
import { requireComplete } from './config/load.js'
import { type Config, STARTER_PAGE } from './config/settings.js'
import { type AppOptions, createServices, type Services } from './services.js'
import { health } from './web/edge/health.js'
import { normalizeRequest, rejectInvalidRequests } from './web/edge/limits.js'
import { loadedInBackground } from './web/edge/loaded-in-background.js'
import { accessLog, brokenResponses, measure, trace } from './web/edge/observe.js'
import { requestOrigin } from './web/edge/request-origin.js'
import { mayBeExecuted, sessionHeaders } from './web/edge/session-status.js'
import { errors } from './web/errors/errors.js'
import { authRoutes } from './web/routes/auth-routes.js'
import { requireTokens as requireTokensOf, type TokensState } from './web/routes/require-tokens.js'
import { fallback } from './web/static/fallback.js'
import { hasStarterPage, starterPage } from './web/static/starter-page.js'
import { staticFiles } from './web/static/static-files.js'

/**
 * Creates the server as a Koa application. Add custom routes with `app.use()`, and start it with `app.listen()`.
 * The module in the setting `extend` is not loaded, because only `startServer` can wait for an import.
 * @param options a clock or a logger that replaces the default one
 * @throws {ConfigError} if `config` lacks a setting
 */
export function createApp(config: Config, options: Partial<AppOptions> = {}): Koa {
  requireComplete(config)
  return assemble(createServices(config, options))
}

/** Creates the application and adds the middleware in the required order. */
export function assemble(services: Services): Koa {
  const { config, log, metrics, tracing, demo } = services
  const wwwroot = config.wwwroot ?? STARTER_PAGE
  const files = staticFiles(services)
  // With `trustProxy`, Koa uses the last IP address in X-Forwarded-For, which the proxy in front of this server has added. The
  // client can invent all the addresses before it.
  const app = new Koa({ proxy: config.trustProxy, maxIpsCount: 1 })

  app.use(provideGate(gate(services)))
  app.use(normalizeRequest)
  app.use(sessionHeaders)
  if (tracing) app.use(trace(tracing))
  if (metrics !== noMetrics) app.use(measure(metrics))
  if (config.log.requests) app.use(accessLog(log))
  app.on('error', brokenResponses(log))
  app.use(errors(services))
  app.use(rejectInvalidRequests)
  app.use(health(services))
  if (config.fallback !== undefined) app.use(fallback(files, config.fallback))
  app.use(files)
  if (hasStarterPage(wwwroot)) app.use(starterPage(services))
  app.use(authRoutes(services))
  if (demo) {
    app.use(loadedInBackground(async () => (await import('./web/routes/demo-routes.js')).demoRoutes(services, demo)))
  }
  if (config.proxy.routes.length > 0) {
    app.use(loadedInBackground(async () => (await import('./web/proxy/middleware.js')).proxy(services)))
  }
  return app
}

// The gate is a property of the context, and not of the application, because koa-mount runs the middleware of one application
// with the context of another.
const GATE = Symbol('gate')
type WithGate = Context & { [GATE]?: Middleware }

function provideGate(gate: Middleware): Middleware {
  return function provideGate(ctx: WithGate, next) {
    ctx[GATE] = gate
    return next()
  }
}

/** Creates the middleware that runs before each custom route that needs tokens. */
function gate(services: Services): Middleware {
  const checkOrigin = requestOrigin('program', { publicOrigin: services.site.origin })
  const refreshSession = requireTokensOf(services)
  const provideSession = loadedInBackground(async () =>
    (await import('./web/routes/custom-route-session.js')).programSession(services)
  )

  return function gate(ctx, next) {
    // The handlers after this middleware use the tokens of one user, so no shared cache may store their responses. A
    // handler may change these headers.
    ctx.set('Cache-Control', 'private, no-store')
    ctx.vary('Cookie')
    return checkOrigin(ctx, () =>
      refreshSession(ctx, () => {
        mayBeExecuted(ctx)
        return provideSession(ctx, next)
      })
    )
  }
}

/**
 * Middleware for custom routes that need tokens. It refreshes the session if necessary and sets `ctx.state.tokens` to
 * `{ internal, public }`. Both values have the form `{ access_token, expires_in }`, where `expires_in` is the remaining
 * lifetime in seconds. If nobody is logged in, it responds with 401 and an empty body, and the handler does not run. If
 * the session cannot be refreshed now, it responds with 503. If a page of another origin caused the request, it
 * responds with 403. Links from other sites are accepted.
 *
 * TypeScript knows the type of `ctx.state.tokens` in the handlers that follow in the same `router.get()`, or in the
 * same chain of `app.use()`.
 */
export const requireTokens: Middleware<TokensState> = async function requireTokens(ctx, next) {
  const { [GATE]: gate } = ctx as WithGate
  if (!gate) {
    throw new TypeError(
      'requireTokens works only in the application of startServer or createApp. Add your middleware, or another Koa application with koa-mount, to that application.'
    )
  }
  await gate(ctx, next)
}
