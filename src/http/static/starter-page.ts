/** Serves a description of this server for the starter page in this package, if the starter page is served. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Middleware } from 'koa'
import { isLocalRequest, isLoopback } from '../../config/urls.js'
import type { Services } from '../../services.js'

/** True if the folder of static files contains the starter page. */
export function hasStarterPage(wwwroot: string): boolean {
  return existsSync(join(wwwroot, 'starter.js'))
}

/**
 * Creates the middleware that serves `/starter-about.json` to requests from this machine. For other requests the URL does
 * not exist, because they must not learn the paths of this machine. The starter page works without it.
 * @example app.use(starterPage(services))
 */
export function starterPage({ config, demo }: Services): Middleware {
  const { mode, wwwroot, platform } = config
  // A server with a public callback URL does not reveal the folder for the pages of the operator. A reverse proxy on
  // this machine may forward the requests of visitors, which then seem to come from this machine.
  const pages = isLoopback(platform.callbackUrl) && {
    folder: wwwroot ?? resolve('wwwroot'),
    hasFolder: wwwroot !== undefined
  }
  const about = { product: 'platform-auth-server', mode, demo: demo !== undefined, ...pages }

  return async function starterPage(ctx, next) {
    if (ctx.path !== '/starter-about.json' || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    if (!isLocalRequest(ctx.req, platform.callbackUrl)) return next()
    ctx.set({ 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' })
    ctx.body = about
  }
}
