/**
 * Serves the files of `wwwroot`. koa-static finds the file for a URL: it decodes the path, rejects hidden names,
 * completes `index.html`, and chooses a compressed variant. This module opens the found file and sends it. It also
 * handles conditional requests, and rejects symlinks that lead out of the root.
 */
import fs, { existsSync, realpathSync, type Stats } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { extname, join, relative, sep } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import type { ProxyRule } from '../../config/proxy-rules.js'
import { AUTH_PATH, isAuthPath } from '../../config/urls.js'
import { loadedInBackground } from '../edge/loaded-in-background.js'
import { invalidRequest } from '../errors/http-error.js'
import { closeFile, isMissing, type OpenedFile, openInside } from './open-inside.js'

/**
 * Creates the middleware that serves static files.
 * @param wwwroot an existing folder, either from the setting `wwwroot` or the folder of the starter page
 * @param hashedAssets the folders below wwwroot, for instance `assets`, whose files never change, because a build tool
 *   puts a hash of the content into each file name
 * @example app.use(staticFiles('/srv/wwwroot', ['assets']))
 */
export function staticFiles(wwwroot: string, hashedAssets: readonly string[] = []): Middleware {
  const root = realpathSync.native(wwwroot)
  const open = openInside(root)
  const hashedFolders = hashedAssets.map(folder => `${folder}/`)
  // Files take precedence over routes (service contract, section 4, rule 5). For a request under `/api/auth`, the
  // server looks for a file only if `wwwroot` contains the folder `api/auth`.
  const hasAuthFiles = existsSync(join(root, AUTH_PATH))
  const serve = loadedInBackground(async () => (await import('koa-static')).default(root, { setHeaders: endSearch }))

  return function staticFiles(ctx, next) {
    return (isAuthPath(ctx.path) && !hasAuthFiles) || hidesDotSegment(ctx.path) ? next() : serveFile(ctx, next)
  }

  async function serveFile(ctx: Context, next: Next) {
    const path = await find(ctx)
    const file = path === undefined ? undefined : await open(path)
    if (path === undefined || file === undefined) {
      // koa-send sets this header before it knows whether the compressed file can be sent, so the header is removed if
      // the file cannot be sent.
      ctx.remove('Content-Encoding')
      return next()
    }
    const name = ctx.response.get('Content-Encoding') === '' ? path : path.replace(/\.(br|gz)$/, '')
    setHeaders(ctx, name, file.stats)
    await send(ctx, file)
  }

  /** Returns the path of the file for the URL of a request, or undefined if there is no such file. */
  async function find(ctx: Context): Promise<string | undefined> {
    try {
      await serve(ctx, async () => {})
    } catch (found) {
      if (found instanceof FoundFile) return found.path
      const error = found as NodeJS.ErrnoException & { readonly status?: number }
      if (error.status === 400) throw invalidRequest('The URL of this request is malformed.')
      // 403 means that the path leads out of the root. The response does not reveal whether something exists there.
      if (!isMissing(error) && error.status !== 403) throw error
    }
    return undefined
  }

  function setHeaders(ctx: Context, name: string, { size, mtime, mtimeMs }: Stats): void {
    ctx.status = 200
    ctx.set({
      'X-Content-Type-Options': 'nosniff',
      // koa-send chooses a compressed file by Accept-Encoding, but does not set Vary (RFC 9110 section 12.5.5), so Vary
      // is set here.
      Vary: 'Accept-Encoding',
      ETag: `W/"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}"`,
      'Last-Modified': mtime.toUTCString(),
      'Cache-Control': cacheControlOf(relative(root, name).replaceAll(sep, '/')),
      'Content-Length': String(size)
    })
    ctx.type = extname(name)
    if (ctx.type === '') ctx.type = 'bin'
  }

  /**
   * Returns the `Cache-Control` header of a file. Browsers cache the files of the folders `hashedAssets` for a year
   * (RFC 8246). They check all other files for changes before each use.
   * @param file the path of the file below wwwroot, with `/` as separator. A URL may spell this path differently.
   */
  function cacheControlOf(file: string): string {
    const isHashed = hashedFolders.some(folder => file.startsWith(folder)) && isNamedFile(file)
    return isHashed ? 'public, max-age=31536000, immutable' : 'max-age=0'
  }
}

// HTML pages are excluded, because they keep their names when their content changes. Files without an extension are
// excluded too, because build tools add no hash to names such as `LICENSE`.
function isNamedFile(file: string): boolean {
  return /\.[a-z][a-z0-9]*$/i.test(file) && !/\.x?html?$/i.test(file)
}

/**
 * True if decoding the path adds a segment `.` or `..`. Browsers and caches resolve the segments of
 * `/assets/%2e%2e/app.js` before they look up the URL (WHATWG URL, double-dot path segment). They would therefore cache
 * the response under a different URL.
 */
function hidesDotSegment(path: string): boolean {
  if (!path.includes('%')) return false
  try {
    return dotSegments(decodeURIComponent(path)) > dotSegments(path)
  } catch {
    // koa-send rejects a path that cannot be decoded.
    return false
  }
}

function dotSegments(path: string): number {
  return path.split(/[/\\]/).filter(segment => segment === '.' || segment === '..').length
}

/**
 * koa-send calls this function when it has found the file. The thrown value ends the work of koa-send before it opens
 * the file, because koa-send would not check what it has opened.
 */
function endSearch(_response: ServerResponse, path: string, stats: Stats): never {
  if (stats.isFile()) throw new FoundFile(path)
  // The path leads to a folder or to a pipe. koa-static treats an error with this status as a missing file.
  throw Object.assign(new Error('This is not a file.'), { status: 404 })
}

/** This class does not extend `Error`, because an error would collect a stack trace for each request. */
class FoundFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }
}

// A stream reads this many bytes in one step, so a stream has no advantage for a smaller file.
const SMALL_FILE_BYTES = 64 * 1024

/** Sends the content of a file, or status 304 if the client already has it. Closes the file, even after an error. */
async function send(ctx: Context, file: OpenedFile): Promise<void> {
  const { fresh } = ctx
  const sendsContent = ctx.method === 'GET' && !fresh
  if (sendsContent && file.stats.size > SMALL_FILE_BYTES) {
    ctx.body = streamOf(file, ctx.res)
    return
  }
  try {
    if (fresh) ctx.status = 304
    if (sendsContent) ctx.body = await contentOf(file)
  } finally {
    closeFile(file.fd)
  }
}

/**
 * Reads a small file in one step. A stream would be slower, because it reads a second time to find the end of the file.
 */
function contentOf({ fd, stats: { size } }: OpenedFile): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    fs.read(fd, Buffer.allocUnsafe(size), 0, size, 0, (error, bytesRead, content) => {
      if (error) reject(error)
      else if (bytesRead < size) reject(new ShortenedError())
      else resolve(content)
    })
  })
}

/**
 * Reads a large file piece by piece, and no more bytes than the headers promise. If the file becomes shorter, the
 * response can no longer be completed. The connection is then closed, so that the client does not wait for the rest.
 */
function streamOf({ fd, stats: { size } }: OpenedFile, response: ServerResponse): fs.ReadStream {
  const stream = fs.createReadStream('', { fd, start: 0, end: size - 1 })
  return stream.once('end', () => {
    if (stream.bytesRead < size) response.destroy(new ShortenedError())
  })
}

class ShortenedError extends Error {
  override readonly message = 'The file became shorter while it was being sent.'
}

/**
 * Wraps the middleware for static files, so that it does not search the folders of proxy rules. Files take precedence
 * over proxy rules, but looking for a file causes 40 % of the cost of a proxied request. Therefore the first folder in
 * the path of a rule is searched only if `wwwroot` contained this folder when the server started.
 * @example app.use(skipProxiedFolders(staticFiles(wwwroot), config.proxy.routes, wwwroot))
 */
export function skipProxiedFolders(staticFiles: Middleware, rules: readonly ProxyRule[], wwwroot: string): Middleware {
  const firstFolders = rules.map(({ path }) => path.segments[0] ?? '')
  const skipped = new Set(firstFolders.filter(folder => folder !== '*' && !existsSync(join(wwwroot, folder))))
  if (skipped.size === 0) return staticFiles

  return function skipProxiedFolders(ctx, next) {
    const [, folder = ''] = ctx.path.split('/', 2)
    return skipped.has(folder) ? next() : staticFiles(ctx, next)
  }
}
