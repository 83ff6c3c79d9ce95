/** The Koa application. It lists the middleware that every request passes, outermost first. */
import Koa, { type Middleware } from 'koa'
import type { Config } from './config/settings.js'
import { STARTER_PAGE } from './config/wwwroot.js'
import { health } from './http/edge/health.js'
import { ignoreLongPreferences, originForm, rejectInvalidRequests } from './http/edge/limits.js'
import { loadedInBackground } from './http/edge/loaded-in-background.js'
import { accessLog, brokenResponses, measure, trace } from './http/edge/observe.js'
import { createRequestLog } from './http/edge/request.js'
import { requestOrigin } from './http/edge/request-origin.js'
import { errors } from './http/errors/errors.js'
import { authRoutes } from './http/routes/auth-routes.js'
import { backChannelLogout } from './http/routes/back-channel-logout.js'
import { callback } from './http/routes/callback.js'
import type { DemoProvider } from './http/routes/demo-routes.js'
import { login } from './http/routes/login.js'
import { logout } from './http/routes/logout.js'
import { profile } from './http/routes/profile.js'
import { requireTokens as requireTokensOf, type TokensState } from './http/routes/require-tokens.js'
import { session } from './http/routes/session.js'
import { fallback } from './http/static/fallback.js'
import { hasStarterPage, starterPage } from './http/static/starter-page.js'
import { skipProxiedFolders, staticFiles } from './http/static/static-files.js'
import { noMetrics } from './metrics/metrics.js'
import { createPages } from './pages/index.js'
import { type AppParts, createServices, type Services } from './services.js'

/**
 * Creates the server as a Koa application. Add routes of your own with `app.use()`, and start it with `app.listen()`.
 * The module in the setting `extend` is not loaded, because only `startServer` can wait for an import.
 * @param parts a clock or a logger that replaces the default one
 */
export function createApp(config: Config, parts: Partial<AppParts> = {}): Koa {
  return assemble(config, createServices(config, parts))
}

interface AssembleOptions {
  /** True while the server shuts down. */
  readonly isDraining?: () => boolean
  /** The built-in demo, if it is the identity provider. The starter page shows this, and the demo has routes of its own. */
  readonly demo?: DemoProvider | undefined
}

/** Creates the application and adds the middleware in its order. */
export function assemble(config: Config, services: Services, options: AssembleOptions = {}): Koa {
  const { isDraining = () => false, demo } = options
  const { log, metrics, tracing, mode, site, storeStatus, shutdown } = services
  const app = new Koa({ proxy: config.trustProxy, maxIpsCount: 1 })
  const requestLog = createRequestLog(log)
  const logsRequests = config.log.requests
  const parts = { ...services, config, requestLog }
  const access = { session: session(parts), requireTokens: requireTokensOf(parts) }
  const programSession = loadedInBackground(async () =>
    (await import('./http/routes/program-session.js')).programSession(app, parts)
  )
  const programOrigin = requestOrigin('program', { publicOrigin: site.origin })
  const wwwroot = config.wwwroot ?? STARTER_PAGE
  const files = staticFiles(wwwroot, config.hashedAssets)
  gates.set(app, (ctx, next) => {
    // The handlers behind this middleware use the tokens of one user, so no shared cache may store their responses. A
    // handler may change these headers.
    ctx.set('Cache-Control', 'private, no-store')
    ctx.vary('Cookie')
    return programOrigin(ctx, () =>
      access.session(ctx, () => access.requireTokens(ctx, () => programSession(ctx, next)))
    )
  })

  app.use(originForm)
  app.use(ignoreLongPreferences)
  if (tracing) app.use(trace(tracing))
  if (metrics !== noMetrics) app.use(measure(metrics))
  if (logsRequests) app.use(accessLog(requestLog))
  app.on('error', brokenResponses(requestLog))
  app.use(errors({ ...parts, pages: createPages(config.pages), logsRequests }))
  app.use(rejectInvalidRequests)
  app.use(health({ isDraining, storeStatus }))
  if (config.fallback !== undefined) app.use(fallback(files, config.fallback))
  app.use(skipProxiedFolders(files, config.proxy.routes, wwwroot))
  if (hasStarterPage(wwwroot)) app.use(starterPage({ config, isDemo: demo !== undefined }))
  app.use(
    authRoutes({
      ...access,
      site,
      login: login(parts),
      callback: callback(parts),
      logout: logout(parts),
      profile: profile(services),
      backChannelLogout:
        services.backChannelLogout && backChannelLogout({ backChannelLogout: services.backChannelLogout, requestLog }),
      offersPublicToken: mode.offersPublicToken
    })
  )
  if (demo) {
    const demoParts = { ...access, demo, publicOrigin: site.origin, now: services.now }
    app.use(loadedInBackground(async () => (await import('./http/routes/demo-routes.js')).demoRoutes(demoParts)))
  }
  if (config.proxy.routes.length > 0) {
    const proxyParts = { ...parts, ...access, config: config.proxy, shutdownHooks: shutdown.hooks }
    app.use(loadedInBackground(async () => (await import('./proxy/middleware.js')).proxy(proxyParts)))
  }
  return app
}

const gates = new WeakMap<Koa, Middleware>()

/**
 * Middleware for routes of your own that need tokens. It refreshes the session if necessary and sets
 * `ctx.state.tokens` to `{ internal, public }`. Each of the two is `{ access_token, expires_in }`, where `expires_in`
 * is the remaining lifetime in seconds. If nobody is logged in, it responds with 401 and an empty body, and the
 * handler does not run. If the session cannot be refreshed now, it responds with 503. If a page of another origin
 * caused the request, it responds with 403. Links from other sites are accepted.
 *
 * TypeScript knows the type of `ctx.state.tokens` in the handlers after it in the same `router.get()`, or in the same
 * chain of `app.use()`.
 */
export const requireTokens: Middleware<TokensState> = async function requireTokens(ctx, next) {
  const gate = gates.get(ctx.app)
  if (!gate) throw new TypeError('requireTokens works in an application made by startServer or createApp')
  await gate(ctx, next)
}
