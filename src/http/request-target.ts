import type { Middleware } from 'koa'

// Scheme and authority of a target in absolute form (RFC 9112 section 3.2.2).
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/**
 * Makes of every request target its path and query. Clients may send a whole address, and Koa then parses its host with
 * `url.parse()`, which throws at one that is malformed, wherever somebody looks at `ctx.path`. The host decides nothing here.
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
  // What follows two slashes, or what passes for them, would be taken for a host as well.
  return path.replace(/^\/[/\\]/, '/%2F')
}
