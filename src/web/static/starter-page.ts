/** Serves the starter page of this package, and a description of this server, which the page shows. */
import { existsSync, readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, resolve } from 'node:path'
import type { Middleware } from 'koa'
import { STARTER_PAGE } from '../../config/settings.js'
import { isLocalRequest, isLoopback } from '../../config/types/urls.js'
import { readCookie } from '../../cookie/request-cookies.js'
import { loadedInBackground } from '../every-request/loaded-in-background.js'
import type { Services } from '../middleware-services.js'
import { notesOf } from '../request/request.js'

/**
 * Creates the middleware that serves the starter page. Nobody changes or protects its files, so they need none of the checks in
 * `static-files.ts`.
 */
export function starterFiles(): Middleware {
  const files = new Set(readdirSync(STARTER_PAGE))
  const serve = loadedInBackground(loadFiles)
  return (ctx, next) => {
    if (!files.has(ctx.path.slice(1) || 'index.html')) return next()
    notesOf(ctx).route = 'static'
    return serve(ctx, next)
  }
}

async function loadFiles(): Promise<Middleware> {
  const { default: koaStatic } = await import('koa-static')
  return koaStatic(STARTER_PAGE, { setHeaders })
}

function setHeaders(response: ServerResponse): void {
  response.setHeader('Cache-Control', 'no-cache')
  response.setHeader('X-Content-Type-Options', 'nosniff')
}

/** True if the folder of static files contains the starter page. */
export function hasStarterPage(wwwroot: string): boolean {
  return existsSync(join(wwwroot, 'starter.js'))
}

/**
 * Creates the middleware that serves `/starter-about.json` to requests from this machine. Other clients get 404,
 * because they must not learn the paths on this machine. The starter page also works without this file.
 * @example app.use(starterPage(services))
 */
export function starterPage({ config, demo, site }: Services): Middleware {
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
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    notesOf(ctx).route = 'static'
    // Without a session, the page need not ask for the profile, whose 401 would be an error in the console.
    const hasSession = readCookie(ctx.get('Cookie'), site.cookies.session) !== undefined
    ctx.body = { ...about, hasSession }
    return undefined
  }
}
