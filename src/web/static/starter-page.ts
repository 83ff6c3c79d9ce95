/** Serves a description of this server, which the starter page of this package shows. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Middleware } from 'koa'
import { isLocalRequest, isLoopback } from '../../config/urls.js'
import type { Services } from '../services.js'

/** True if the folder of static files contains the starter page. */
export function hasStarterPage(wwwroot: string): boolean {
  return existsSync(join(wwwroot, 'starter.js'))
}

/**
 * Creates the middleware that serves `/starter-about.json` to requests from this machine. Other clients get 404,
 * because they must not learn the paths on this machine. The starter page also works without this file.
 * @example app.use(starterPage(services))
 */
export function starterPage({ config, demo }: Services): Middleware {
  const { mode, wwwroot, platform } = config
  // A server with a public callback URL does not reveal the folder for the operator's pages, because a reverse proxy on
  // this machine may forward requests from visitors. These requests seem to come from this machine.
  const pages = isLoopback(platform.callbackUrl) && {
    folder: wwwroot ?? resolve('wwwroot'),
    hasFolder: wwwroot !== undefined
  }
  const about = { product: 'platform-auth-server', mode, demo: demo !== undefined, ...pages }

  return function starterPage(ctx, next) {
    if (ctx.path !== '/starter-about.json' || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    if (!isLocalRequest(ctx.req, platform.callbackUrl)) return next()
    ctx.set({ 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' })
    ctx.body = about
    return undefined
  }
}
