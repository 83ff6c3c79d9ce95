/**
 * Implements the setting `hashedAssets`. It lists folders whose files never change, because a build tool puts a hash of
 * the content into each file name.
 */
import type { Middleware } from 'koa'

const A_YEAR = 'public, max-age=31536000, immutable'

/**
 * Wraps the layer for static files, so that browsers cache the files of some folders for a year (RFC 8246).
 * @param files the layer that serves static files
 * @param folders paths below wwwroot, for instance `assets`
 */
export function keepHashedAssets(files: Middleware, folders: readonly string[] = []): Middleware {
  if (folders.length === 0) return files
  const prefixes = folders.map(folder => `/${folder}/`)

  return async function keepHashedAssets(ctx, next) {
    let isFile = true
    await files(ctx, () => {
      isFile = false
      return next()
    })
    if (isFile && isHashed(ctx.path)) ctx.set('Cache-Control', A_YEAR)
  }

  function isHashed(path: string): boolean {
    return prefixes.some(prefix => path.startsWith(prefix)) && !path.includes('..') && isNamedFile(path)
  }
}

// HTML pages are excluded, because they keep their names when their content changes. A path without an extension may
// lead to the `index.html` of a folder.
function isNamedFile(path: string): boolean {
  return /\.[a-z][a-z0-9]*$/i.test(path) && !/\.x?html?$/i.test(path)
}
