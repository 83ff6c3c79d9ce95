/** The Koa application. It lists the middleware that every request passes, outermost first. */
import Koa from 'koa'
import { noMetrics } from './base/metrics.js'
import { STARTER_PAGE } from './config/settings.js'
import { errors } from './web/errors/error-responses.js'
import { health } from './web/every-request/health-routes.js'
import { normalizeRequest, rejectInvalidRequests } from './web/every-request/limits.js'
import { loadedInBackground } from './web/every-request/loaded-in-background.js'
import { brokenResponses, observe } from './web/every-request/observe.js'
import type { Services } from './web/middleware-services.js'
import { serverHeaders } from './web/request/response-head.js'
import { authRoutes } from './web/routes/auth-routes.js'
import { customRoutes } from './web/routes/custom-routes.js'
import { fallback } from './web/static/fallback.js'
import { hasStarterPage, starterFiles, starterPage } from './web/static/starter-page.js'
import { staticFiles } from './web/static/static-files.js'

/**
 * Creates the application and adds the middleware in the required order. Custom routes come after it.
 * @param hasCustomRoutes false if there are none, so that koa-session is not loaded
 */
export function assemble(services: Services, hasCustomRoutes: boolean): Koa {
  const { config, log, metrics, tracing, demo } = services
  const wwwroot = config.wwwroot ?? STARTER_PAGE
  const files = config.wwwroot === undefined ? starterFiles() : staticFiles(services, config.wwwroot)
  // Each proxy adds the address of its client to X-Forwarded-For. The client can invent all the addresses before those.
  const proxies = config.log.trustForwardedFor
  const app = new Koa({ proxy: proxies > 0, maxIpsCount: proxies })

  if (hasCustomRoutes) app.use(customRoutes(services))
  app.use(normalizeRequest)
  app.use(serverHeaders)
  if (tracing || metrics !== noMetrics || config.log.requests) app.use(observe(services))
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
  if (config.apiProxy.rules.length > 0) {
    app.use(loadedInBackground(async () => (await import('./web/proxy/middleware.js')).proxy(services)))
  }
  return app
}
