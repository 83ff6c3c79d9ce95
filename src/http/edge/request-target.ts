import type { Middleware } from 'koa'

// Scheme and authority of a target in absolute form (RFC 9112 section 3.2.2).
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/**
 * Reduces every request target to its path and query. A client may send an absolute address, but this server does not
 * need the host in it. Koa would parse the host with `url.parse()` on every access to `ctx.path`, and this function
 * throws for a malformed host.
 */
export const originForm: Middleware = function originForm(ctx, next) {
  if (!isPlainPath(ctx.url)) ctx.url = pathAndQuery(ctx.url)
  return next()
}

function isPlainPath(target: string): boolean {
  return target[0] === '/' && target[1] !== '/' && target[1] !== '\\'
}

function pathAndQuery(target: string): string {
  if (target === '*') return target
  const rest = target.replace(AUTHORITY, '')
  const path = rest.startsWith('/') ? rest : `/${rest}`
  // `url.parse()` would read the text after two slashes, or after a slash and a backslash, as a host.
  return path.replace(/^\/[/\\]/, '/%2F')
}
