/** Files of `wwwroot` by koa-static, with what it leaves to others: conditional requests, and no way out of the root. */
import { existsSync, type ReadStream, realpathSync, type Stats } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, sep } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import { AUTH_PATH, isAuthPath } from './auth-routes.js'
import { HttpError } from './errors.js'

/** Not needed to listen, and a third of what a start takes beyond Koa's own: loaded once there is time, or when needed. */
export function loadKoaStatic() {
  return import('koa-static')
}

export function staticFiles(wwwroot: string): Middleware {
  const root = realpathSync(wwwroot)
  const inside = root.endsWith(sep) ? root : root + sep
  // The contract lets files go before routes; looking for them on every API request is only worth it if there are any.
  const hasAuthFiles = existsSync(join(root, AUTH_PATH))
  let serve: Middleware | undefined

  function setHeaders(response: ServerResponse, path: string, stats: Stats) {
    if (!stats.isFile() || !realpathSync(path).startsWith(inside)) throw new NotServedError()
    response.setHeader('X-Content-Type-Options', 'nosniff')
    // koa-send picks a compressed neighbour by this header and leaves it to others to tell the caches (RFC 9110 section 12.5.5).
    response.setHeader('Vary', 'Accept-Encoding')
    response.setHeader('ETag', `W/"${stats.size.toString(36)}-${Math.round(stats.mtimeMs).toString(36)}"`)
  }

  return function staticFiles(ctx, next) {
    return isAuthPath(ctx.path) && !hasAuthFiles ? next() : serveFile(ctx, next)
  }

  async function serveFile(ctx: Context, next: Next) {
    let found = true
    serve ??= (await loadKoaStatic()).default(root, { setHeaders })
    try {
      await serve(ctx, async () => {
        found = false
      })
    } catch (error) {
      const { code = '', status } = error as NodeJS.ErrnoException & { readonly status?: number }
      if (status === 400) throw new HttpError(400, 'invalid_request', 'The address of this request is malformed.')
      // 403: the path leads out of the root. Nobody needs to know what is there.
      if (!GONE.has(code) && status !== 403) throw error
      found = false
    }
    if (!found || ctx.body == null) {
      // Said by koa-send before it knew whether the compressed neighbour can be sent.
      ctx.remove('Content-Encoding')
      return next()
    }
    await opened(ctx.body as ReadStream)
    if (ctx.fresh) ctx.status = 304
  }
}

// koa-send hands over a file that is yet to be opened. Found out by Koa, a failure leaves it nothing but to cut the connection.
function opened(file: ReadStream): Promise<void> {
  return new Promise((resolve, reject) => {
    file.once('open', () => resolve())
    file.once('error', (error: NodeJS.ErrnoException) => {
      reject(GONE.has(error.code ?? '') ? new NotServedError() : error)
    })
  })
}

// Links in a circle, and a file that was taken away while we looked at it.
const GONE = new Set(['ELOOP', 'ENOENT'])

/** A symbolic link that leads elsewhere, a folder in the place of a file, a pipe: as good as not there. */
class NotServedError extends Error {
  readonly status = 404
}
