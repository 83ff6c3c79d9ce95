/** The whole program at a glance: the layers every request passes, outermost first. */
import Koa, { type Middleware } from 'koa'
import type { Config } from './config/settings.js'
import { STARTER_PAGE } from './config/wwwroot.js'
import { accessLog } from './http/access-log.js'
import { authRoutes } from './http/auth-routes.js'
import { brokenAnswers } from './http/broken-answers.js'
import { callback } from './http/callback.js'
import { errors } from './http/errors.js'
import { fallback } from './http/fallback.js'
import { keepHashedAssets } from './http/hashed-assets.js'
import { health } from './http/health.js'
import { lazily, onFirstUse } from './http/lazily.js'
import { ignoreLongPreferences, refuseInvalidRequests } from './http/limits.js'
import { login } from './http/login.js'
import { logout } from './http/logout.js'
import { measure } from './http/measure.js'
import { profile } from './http/profile.js'
import { skipProxiedFolders } from './http/proxied-folders.js'
import { originForm } from './http/request-target.js'
import { requireTokens as requireTokensOf, type TokensState } from './http/require-tokens.js'
import { session } from './http/session.js'
import { hasStarterPage, starterPage } from './http/starter-page.js'
import { staticFiles } from './http/static-files.js'
import { noMetrics } from './metrics/metrics.js'
import { type AppParts, createServices, type Services } from './services.js'

/**
 * The server as a Koa application, for `app.listen()` or for routes of your own after it (`app.use`). The module of the
 * setting `extend` is not loaded: only `startServer` can wait for an import.
 * @param parts a clock, a logger or a coordination store of your own instead of the usual ones
 */
export function createApp(config: Config, parts: Partial<AppParts> = {}): Koa {
  return assemble(createServices(config, parts), () => false)
}

export function assemble(services: Services, isDraining: () => boolean): Koa {
  const { config } = services
  const app = new Koa({ proxy: config.trustProxy, maxIpsCount: 1 })
  const sessionLayer = session(services)
  const tokensLayer = requireTokensOf(services)
  const programSessionLayer = onFirstUse(async () =>
    (await import('./http/program-session.js')).programSession(app, services)
  )
  const wwwroot = config.wwwroot ?? STARTER_PAGE
  const files = staticFiles(wwwroot)
  gates.set(app, (ctx, next) => {
    // Whatever a handler answers with somebody's tokens is that person's alone; it may say otherwise.
    ctx.set('Cache-Control', 'private, no-store')
    ctx.vary('Cookie')
    return sessionLayer(ctx, () => tokensLayer(ctx, () => programSessionLayer(ctx, next)))
  })

  app.use(originForm)
  app.use(ignoreLongPreferences)
  if (services.metrics !== noMetrics) app.use(measure(services.metrics))
  if (config.log.requests) app.use(accessLog(services.requestLog))
  app.on('error', brokenAnswers(services.requestLog))
  app.use(errors(services))
  app.use(refuseInvalidRequests)
  app.use(health({ isDraining, coordination: services.coordination }))
  if (config.fallback !== undefined) app.use(fallback(files, config.fallback))
  app.use(keepHashedAssets(skipProxiedFolders(files, config.proxy.routes, wwwroot), config.hashedAssets))
  if (hasStarterPage(wwwroot)) app.use(starterPage({ mode: config.mode, isDemo: services.isDemo }))
  app.use(
    authRoutes({
      session: sessionLayer,
      requireTokens: tokensLayer,
      login: login(services),
      callback: callback(services),
      logout: logout(services),
      profile: profile(services),
      offersPublicToken: services.offersPublicToken
    })
  )
  if (config.proxy.routes.length > 0) {
    const parts = { ...services, session: sessionLayer, requireTokens: tokensLayer }
    app.use(lazily(async () => (await import('./http/proxy.js')).proxy(parts)))
  }
  return app
}

const gates = new WeakMap<Koa, Middleware>()

/**
 * The refresh step for routes of your own. Behind it `ctx.state.tokens` is `{ internal, public }`, each
 * `{ access_token, expires_in }` (seconds left). Without a login it answers 401 with an empty body, and the handler does
 * not run. It answers 503 when the identity provider cannot refresh the session at the moment.
 *
 * Its type carries the state to the handlers after it in the same `router.get()`, or in the same chain of `app.use()`.
 */
export const requireTokens: Middleware<TokensState> = async function requireTokens(ctx, next) {
  const gate = gates.get(ctx.app)
  if (!gate) throw new TypeError('requireTokens works in an application made by startServer or createApp')
  await gate(ctx, next)
}
