/** Files of `wwwroot` by koa-static. This adds conditional requests and keeps links from leading out of the root. */
import { existsSync, type ReadStream, realpathSync, type Stats } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, sep } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import { AUTH_PATH, isAuthPath } from './auth-routes.js'
import { HttpError } from './errors.js'

/** Loaded after the server listens, or by the first request, because it takes a third of the time of a start. */
export function loadKoaStatic() {
  return import('koa-static')
}

/** @param wwwroot a folder that exists; the value of the setting or the starter page */
export function staticFiles(wwwroot: string): Middleware {
  const root = realpathSync(wwwroot)
  const inside = root.endsWith(sep) ? root : root + sep
  // By the contract files come before routes. API requests only pay for the look-up when there are such files.
  const hasAuthFiles = existsSync(join(root, AUTH_PATH))
  let serve: Middleware | undefined

  function isServed(path: string): boolean {
    const target = realpathSync(path)
    return target.startsWith(inside) && !isHidden(target.slice(inside.length))
  }

  function setHeaders(response: ServerResponse, path: string, stats: Stats) {
    if (!stats.isFile() || !isServed(path)) throw new NotServedError()
    response.setHeader('X-Content-Type-Options', 'nosniff')
    // koa-send chooses a compressed file by this header but does not tell caches (RFC 9110 section 12.5.5).
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
      // 403 means that the path leads out of the root. The client need not know what is there.
      if (!MISSING.has(code) && status !== 403) throw error
      found = false
    }
    if (!found || ctx.body == null) {
      // koa-send has set it before it knew whether the compressed file can be sent.
      ctx.remove('Content-Encoding')
      return next()
    }
    await opened(ctx.body as ReadStream)
    if (ctx.fresh) ctx.status = 304
  }
}

// koa-send checks the names in the address, not those behind a link. Two dots are no hidden name: every file of a mounted
// Kubernetes ConfigMap is a link into the folder `..data`.
function isHidden(pathInRoot: string): boolean {
  return pathInRoot.split(sep).some(name => name.startsWith('.') && !name.startsWith('..'))
}

// koa-send returns before the file is open. If opening failed later, Koa could only destroy the connection.
function opened(file: ReadStream): Promise<void> {
  return new Promise((resolve, reject) => {
    file.once('open', () => resolve())
    file.once('error', (error: NodeJS.ErrnoException) => {
      reject(MISSING.has(error.code ?? '') ? new NotServedError() : error)
    })
  })
}

// A circle of links, and a file that was removed after its look-up.
const MISSING = new Set(['ELOOP', 'ENOENT'])

/** A link to something that is not served, a folder named like a file, or a pipe. It is answered like a missing file. */
class NotServedError extends Error {
  readonly status = 404
}
