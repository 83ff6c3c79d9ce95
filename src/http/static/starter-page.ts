/**
 * Serves two files for the starter page in this package: the style sheet that it shares with the error pages, and a
 * description of this server. Both exist only if the starter page is served.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Middleware } from 'koa'
import { isLoopback } from '../../config/addresses.js'
import type { Config } from '../../config/settings.js'
import { pageStyle } from '../../pages/index.js'

export interface StarterPageParts {
  readonly config: Pick<Config, 'mode' | 'wwwroot' | 'platform'>
  readonly isDemo: boolean
}

/** True if the folder of static files contains the starter page. */
export function hasStarterPage(wwwroot: string): boolean {
  return existsSync(join(wwwroot, 'starter.js'))
}

/**
 * Creates the middleware that serves the two files.
 * @example app.use(starterPage({ config, isDemo: false }))
 */
export function starterPage({ config, isDemo }: StarterPageParts): Middleware {
  const about = { product: 'platform-auth-server', mode: config.mode, demo: isDemo, ...ownPages(config) }
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

/**
 * Returns the folder for the operator's own pages, and whether this folder already exists. A server that other machines
 * can reach does not tell visitors the paths of its machine.
 */
function ownPages({ wwwroot, platform }: StarterPageParts['config']) {
  if (!isLoopback(platform.callbackUrl)) return {}
  return { folder: wwwroot ?? resolve('wwwroot'), hasFolder: wwwroot !== undefined }
}
