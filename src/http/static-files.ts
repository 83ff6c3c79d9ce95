/** Files of `wwwroot` by koa-static, with what it leaves to others: conditional requests, and no way out of the root. */
import { existsSync, realpathSync, type Stats } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, sep } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import koaStatic from 'koa-static'
import { AUTH_PATH, isAuthPath } from './auth-routes.js'

export function staticFiles(wwwroot: string): Middleware {
  const root = realpathSync(wwwroot)
  const inside = root.endsWith(sep) ? root : root + sep
  // The contract lets files go before routes; looking for them on every API request is only worth it if there are any.
  const hasAuthFiles = existsSync(join(root, AUTH_PATH))
  const serve = koaStatic(root, { setHeaders })

  function setHeaders(response: ServerResponse, path: string, { size, mtimeMs }: Stats) {
    if (!realpathSync(path).startsWith(inside)) throw new OutsideRootError()
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('ETag', `W/"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}"`)
  }

  return function staticFiles(ctx, next) {
    return isAuthPath(ctx.path) && !hasAuthFiles ? next() : serveFile(ctx, next)
  }

  async function serveFile(ctx: Context, next: Next) {
    let found = true
    await serve(ctx, async () => {
      found = false
    })
    if (!found || ctx.body == null) return next()
    if (ctx.fresh) ctx.status = 304
  }
}

/** A symbolic link that leads elsewhere: as good as not there. */
class OutsideRootError extends Error {
  readonly status = 404
}
