/**
 * Serves the files of `wwwroot`.
 *
 * - `current-root`: the folder to which `wwwroot` leads at present
 * - `find-file`, `open-inside`: the file of a URL, opened so that no link leads out of the folder
 * - `file-guard`: the files that need a session; `fallback`: the page for URLs without a file
 * - `content`: the response; `starter-page`: the page of this package
 */
import { extname } from 'node:path'
import type { Context, Middleware, Next } from 'koa'
import { decodings } from '../../base/path-readings.js'
import type { Services } from '../middleware-services.js'
import { notesOf } from '../request/request.js'
import { redirect } from '../request/returning.js'
import { contentSender } from './content.js'
import { type Root, watchRoot } from './current-root.js'
import { hasNoResponse } from './fallback.js'
import { fileGuard } from './file-guard.js'
import { type FoundFile, pathBelowRoot } from './find-file.js'
import { closeFile, type OpenedFile } from './open-inside.js'

/**
 * Creates the middleware that serves static files.
 * @example app.use(staticFiles(services, config.wwwroot))
 */
export function staticFiles(services: Services, wwwroot: string): Middleware {
  const { config, site } = services
  const currentRoot = watchRoot(services, wwwroot)
  const sendContent = contentSender()
  const guard = fileGuard(services)
  const hashedFolders = (config.hashedAssets ?? []).map(folder => `${folder}/`)

  // This function is not async, because most requests for routes pass it without waiting for anything.
  return function staticFiles(ctx, next) {
    if ((ctx.method !== 'GET' && ctx.method !== 'HEAD') || namesNoFile(ctx.path)) return next()
    const root = currentRoot()
    return root instanceof Promise || root.mayContain(ctx.path) ? serveFile(ctx, next, root) : next()
  }

  async function serveFile(ctx: Context, next: Next, current: Root | Promise<Root>): Promise<void> {
    const root = await current
    const found = root.mayContain(ctx.path) ? await root.find(ctx) : undefined
    if (!found) return respondWithoutFile(ctx, next)
    notesOf(ctx).route = 'static'
    const { file, path, isIndexOfFolder } = found
    const respond = (isProtected: boolean) =>
      isIndexOfFolder ? redirectToFolder(ctx, next, file) : sendFile(ctx, found, isProtected)
    if (!guard?.protects(path, file.path)) return respond(false)
    let isUsed = false
    try {
      await guard.admit(ctx, () => {
        isUsed = true
        return respond(true)
      })
    } finally {
      if (!isUsed) closeFile(file.fd)
    }
  }

  /** A path of a protected file gets the same response if the file does not exist. */
  async function respondWithoutFile(ctx: Context, next: Next): Promise<void> {
    const path = guard && pathBelowRoot(ctx.path)
    await next()
    if (path !== undefined && guard?.protectsPath(path) && hasNoResponse(ctx)) await guard.admit(ctx, async () => {})
  }

  async function redirectToFolder(ctx: Context, next: Next, { fd }: OpenedFile): Promise<void> {
    closeFile(fd)
    const path = `${ctx.path}/`
    if (!isPlainPath(path)) return next()
    if (!ctx.res.hasHeader('Cache-Control')) ctx.set('Cache-Control', 'no-cache')
    redirect(ctx, site.basePath + path + ctx.search)
  }

  function sendFile(ctx: Context, { file, path, encoding }: FoundFile, isProtected: boolean): Promise<void> {
    const name = encoding === undefined ? path : path.replace(/\.(br|gz)$/, '')
    ctx.set('X-Content-Type-Options', 'nosniff')
    // A compressed file is chosen by Accept-Encoding (RFC 9110 section 12.5.5).
    ctx.vary('Accept-Encoding')
    if (encoding !== undefined) ctx.set('Content-Encoding', encoding)
    // A response that sets a cookie must not be stored.
    if (!ctx.res.hasHeader('Set-Cookie')) {
      ctx.set('Cache-Control', isProtected ? protectedCacheControlOf(name) : cacheControlOf(name))
    }
    ctx.type = extname(name)
    if (ctx.type === '') ctx.type = 'bin'
    return sendContent(ctx, file)
  }

  /**
   * Returns the `Cache-Control` header of a file. Browsers cache the files of the folders `hashedAssets` for a year
   * (RFC 8246). They check all other files for changes before each use.
   */
  function cacheControlOf(file: string): string {
    const isHashed = hashedFolders.some(folder => file.startsWith(folder)) && isNamedFile(file)
    return isHashed ? 'public, max-age=31536000, immutable' : 'no-cache'
  }
}

/**
 * Returns the `Cache-Control` header of a file that needs a session. Browsers do not store pages, because they would show
 * a stored page after a logout if the user goes back. They store other files, and ask the server before each use.
 */
function protectedCacheControlOf(file: string): string {
  return isPage(file) ? 'private, no-store' : 'private, no-cache'
}

// HTML pages are excluded, because they keep their names when their content changes. Files without an extension are
// excluded too, because build tools add no hash to names such as `LICENSE`.
function isNamedFile(file: string): boolean {
  return /\.[a-z][a-z0-9]*$/i.test(file) && !isPage(file)
}

function isPage(file: string): boolean {
  return /\.x?html?$/i.test(file)
}

/**
 * True if the decoded path begins with two slashes, or if decoding the path adds a segment `.` or `..`. The API proxy
 * merges slashes at the beginning, so such a path may belong to one of its rules. Browsers and caches resolve the segments
 * of `/assets/%2e%2e/app.js` before they look up the URL (WHATWG URL, double-dot path segment). They would therefore
 * cache the response under a different URL.
 */
function namesNoFile(path: string): boolean {
  if (!path.includes('%')) return false
  try {
    const decoded = decodeURIComponent(path)
    return decoded.startsWith('//') || countDotSegments(decoded) > countDotSegments(path)
  } catch {
    // `find` rejects a path that cannot be decoded.
    return false
  }
}

/**
 * True if a redirect to the path stays on this site and opens the same folder. In `//evil.example/%2e%2e`, browsers would
 * take the first segment for a host.
 */
function isPlainPath(path: string): boolean {
  return decodings(path).every(
    reading => reading.startsWith('/') && !/\/\/|\\/.test(reading) && countDotSegments(reading) === 0
  )
}

function countDotSegments(path: string): number {
  return path.split(/[/\\]/).filter(segment => segment === '.' || segment === '..').length
}
