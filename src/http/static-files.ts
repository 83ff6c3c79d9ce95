/**
 * Serves the files of `wwwroot` with koa-static. This file adds conditional requests and refuses links that lead out of
 * the root.
 */
import { existsSync, type ReadStream, realpathSync, type Stats } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, sep } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import { AUTH_PATH, isAuthPath } from '../config/routes.js'
import { invalidRequest } from './http-error.js'

/**
 * Loads koa-static. This takes a third of the startup time, so it is done after the server listens, or on the first
 * request.
 */
export function loadKoaStatic() {
  return import('koa-static')
}

/**
 * Creates the layer that serves static files.
 * @param wwwroot an existing folder, either from the setting `wwwroot` or the folder of the starter page
 */
export function staticFiles(wwwroot: string): Middleware {
  const root = realpathSync.native(wwwroot)
  const inside = root.endsWith(sep) ? root : root + sep
  // Files take precedence over routes (service contract, section 4, rule 5). Requests under `/api/auth` look for a file
  // only if `wwwroot` contains this folder.
  const hasAuthFiles = existsSync(join(root, AUTH_PATH))
  let serve: Middleware | undefined

  function isServed(path: string): boolean {
    // Plain `realpathSync` is written in JavaScript and makes a system call for each folder above the file.
    const target = realpathSync.native(path)
    return target.startsWith(inside) && !isHidden(target.slice(inside.length))
  }

  function setHeaders(response: ServerResponse, path: string, stats: Stats) {
    if (!stats.isFile() || !isServed(path)) throw new NotServedError()
    response.setHeader('X-Content-Type-Options', 'nosniff')
    // koa-send chooses a compressed file by Accept-Encoding, but does not set Vary (RFC 9110 section 12.5.5).
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
      if (status === 400) throw invalidRequest('The address of this request is malformed.')
      // 403 means that the path leads out of the root. The response does not reveal whether something exists there.
      if (!MISSING.has(code) && status !== 403) throw error
      found = false
    }
    if (!found || ctx.body == null) {
      // koa-send sets this header before it knows whether the compressed file can be sent.
      ctx.remove('Content-Encoding')
      return next()
    }
    const file = ctx.body as ReadStream
    await opened(file)
    if (ctx.fresh) ctx.status = 304
    else if (ctx.method === 'GET' && ctx.length !== undefined && ctx.length <= SMALL_FILE_BYTES) {
      ctx.body = (await contentOf(file, ctx.length)) ?? file
    }
  }
}

// koa-send checks the names in the address, but not in the target of a link. A name that begins with two dots does not
// count as hidden, because every file of a mounted Kubernetes ConfigMap is a link into the folder `..data`.
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

// The number of bytes that a stream reads at once.
const SMALL_FILE_BYTES = 64 * 1024

/**
 * Returns the content of a small file. The stream is destroyed after its first read, because it would read again to
 * find the end of the file. The content must be read through the stream and not through the file descriptor. When the
 * client disconnects, the stream closes the descriptor, and the system may use the same number for another file.
 * @returns undefined if the file became shorter than `length`, or if the stream was closed
 */
function contentOf(file: ReadStream, length: number): Promise<Buffer | undefined> {
  return new Promise(resolve => {
    file.once('close', () => resolve(undefined))
    file.once('readable', () => {
      const content: Buffer | null = file.read()
      if (content === null || content.length < length) {
        if (content) file.unshift(content)
        resolve(undefined)
        return
      }
      resolve(content.subarray(0, length))
      file.destroy()
    })
  })
}

// ELOOP reports a circle of links. ENOENT reports a file that was removed after koa-send had found it.
const MISSING = new Set(['ELOOP', 'ENOENT'])

/**
 * The path leads to a folder, to a pipe, or to a link whose target is not served. The response is the same as for a
 * missing file.
 */
class NotServedError extends Error {
  readonly status = 404
}
