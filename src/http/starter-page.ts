/**
 * Two files that the packaged starter page needs and that are not in its folder: the style it shares with the error pages, and
 * what it says about this server. They exist only where the starter page is served.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Middleware } from 'koa'
import type { Config } from '../config/settings.js'
import { pageStyle } from '../pages/index.js'

export interface AboutServer {
  readonly mode: Config['mode']
  readonly isDemo: boolean
}

/** @param wwwroot the folder of static files; the layer does nothing if `starter.js` was not in it at the start */
export function starterPage(wwwroot: string, { mode, isDemo }: AboutServer): Middleware {
  if (!existsSync(join(wwwroot, 'starter.js'))) return (_ctx, next) => next()
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
