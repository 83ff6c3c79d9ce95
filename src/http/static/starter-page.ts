/**
 * Serves two files for the starter page in this package: the style sheet that it shares with the error pages, and a
 * description of this server. Both exist only if the starter page is served.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Middleware } from 'koa'
import type { Config } from '../../config/settings.js'
import { pageStyle } from '../../pages/index.js'

export interface AboutServer {
  readonly mode: Config['mode']
  readonly isDemo: boolean
}

/** True if the folder of static files contains the starter page. */
export function hasStarterPage(wwwroot: string): boolean {
  return existsSync(join(wwwroot, 'starter.js'))
}

/**
 * Creates the middleware that serves the two files.
 * @example app.use(starterPage({ mode: 'dual', isDemo: false }))
 */
export function starterPage({ mode, isDemo }: AboutServer): Middleware {
  const about = { product: 'platform-auth-server', mode, demo: isDemo }
  const files = new Map([
    ['/starter-base.css', { type: 'css', body: pageStyle }],
    ['/starter-about.json', { type: 'json', body: JSON.stringify(about) }]
  ])

  return async function starterPage(ctx, next) {
    const file = files.get(ctx.path)
    if (!file || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next()
    ctx.set({ 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' })
    ctx.type = file.type
    ctx.body = file.body
  }
}
