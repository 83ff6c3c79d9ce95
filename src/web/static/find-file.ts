import fs from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join, sep } from 'node:path'
import type { Context } from 'koa'
import { loadedInBackground } from '../edge/loaded-in-background.js'
import { invalidRequest } from '../errors/http-error.js'
import { isMissing } from './open-inside.js'

export interface FoundFile {
  /** The path on this machine. It is not checked, so it may lead out of the root through a symlink. */
  readonly path: string
  /** True if the URL is that of a folder without the slash at its end, and the file is the folder's `index.html`. */
  readonly isIndexOfFolder: boolean
  /** The value of `Content-Encoding`, if the file is a compressed variant of the file for the URL. */
  readonly encoding: string | undefined
}

const INDEX = 'index.html'
const LEADS_UP = /(?:^|[/\\])\.\.(?:[/\\]|$)/

/**
 * Creates a function that finds the file for the URL of a request. koa-static decodes the path, rejects hidden names,
 * completes `index.html`, and chooses a compressed variant. If a path has no file, the file with the extension `.html`
 * is used, because static site generators write `about.html` for `/about`. A folder comes last.
 * @param root the real path of a folder
 */
export function fileFinder(root: string) {
  const serve = loadedInBackground(async () => (await import('koa-static')).default(root, { setHeaders: endSearch }))

  return async function findFile(ctx: Context): Promise<FoundFile | undefined> {
    const found = await search(ctx)
    if (ctx.path.endsWith('/')) return found
    const decodedPath = decodeURIComponent(ctx.path)
    const isIndexOfFolder = found?.path.endsWith(sep + INDEX) === true && !decodedPath.endsWith(INDEX)
    if (found && !isIndexOfFolder) return found
    return (await searchPage(ctx, decodedPath)) ?? (found && { ...found, isIndexOfFolder })
  }

  async function searchPage(ctx: Context, decodedPath: string): Promise<FoundFile | undefined> {
    if (LEADS_UP.test(decodedPath)) return undefined
    // Requests for routes also get here, so a single system call decides whether a second search is necessary.
    if (!(await isAccessible(join(root, `${decodedPath}.html`)))) return undefined
    return search(Object.create(ctx, { path: { value: `${ctx.path}.html` } }))
  }

  async function search(ctx: Context): Promise<FoundFile | undefined> {
    try {
      await serve(ctx, async () => {})
    } catch (found) {
      if (found instanceof EndOfSearch) return { path: found.path, isIndexOfFolder: false, encoding: takeEncoding(ctx) }
      const error = found as NodeJS.ErrnoException & { readonly status?: number }
      if (error.status === 400) throw invalidRequest('The URL of this request is malformed.')
      // 403 means that the path leads out of the root. The response does not reveal whether something exists there.
      if (!isMissing(error) && error.status !== 403) throw error
    }
    takeEncoding(ctx)
    return undefined
  }
}

/** koa-send sets `Content-Encoding` before it knows whether the compressed file can be sent, so the header is removed. */
function takeEncoding(ctx: Context): string | undefined {
  const encoding = ctx.res.getHeader('Content-Encoding')
  if (encoding !== undefined) ctx.remove('Content-Encoding')
  return encoding?.toString()
}

function isAccessible(path: string): Promise<boolean> {
  return new Promise(resolve => fs.access(path, error => resolve(!error)))
}

/**
 * koa-send calls this function when it has found the file. The thrown value ends the work of koa-send before it opens
 * the file, because koa-send would not check what it has opened.
 */
function endSearch(_response: ServerResponse, path: string, stats: fs.Stats): never {
  if (stats.isFile()) throw new EndOfSearch(path)
  // The path leads to a folder or to a pipe. koa-static treats an error with this status as a missing file.
  throw Object.assign(new Error('This is not a file.'), { status: 404 })
}

/** This class does not extend `Error`, because an error would collect a stack trace for each request. */
class EndOfSearch {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }
}
