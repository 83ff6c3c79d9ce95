/**
 * Determines the page to which a browser returns after a login or a logout. It also determines the page for the new
 * login that error pages offer.
 */

import type { Context } from 'koa'
import { AUTH_PATH } from '../../config/urls.js'
import type { LoginPrompt } from '../../login/begin-login.js'

/** Returns the path and query in the `return_to` parameter if they are safe, otherwise `/`. */
export function requestedReturnTo(ctx: Context): string {
  const [requested, ...more] = new URLSearchParams(ctx.querystring).getAll('return_to')
  return safeReturnTo(more.length === 0 ? requested : undefined)
}

/**
 * Converts a return path to the path that the browser sees. The return path `/` means the start page. If a reverse proxy removes
 * a base path from each request, the browser needs the start page with this base path. All other return paths come from the
 * browser and already contain the base path.
 * @param homePath the public path of the start page, for example `/app/`
 */
export function publicPathOf(returnTo: string, homePath: string): string {
  return returnTo === '/' ? homePath : returnTo
}

// The path is a property of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const RETURN_TO = Symbol('return to')
type LoginContext = Context & { [RETURN_TO]?: string }

/** Called by the login and callback routes as soon as they know the return path of their login. */
export function rememberReturnTo(ctx: LoginContext, returnTo: string): void {
  ctx[RETURN_TO] = returnTo
}

/**
 * Returns the path and query to which the next login should return. If this request belongs to a failed login, the
 * result is the return path of that login. Otherwise, if this request is for a page, the result is the path of that
 * page. For all other requests, the result is `/`.
 * @param homePath the public path of the start page, for example `/app/`. In this example, a reverse proxy has removed
 *   `/app` from the request, so this function adds it again.
 */
export function returnToOf(ctx: LoginContext, homePath: string): string {
  const remembered = ctx[RETURN_TO]
  if (remembered !== undefined) return remembered
  const isPage = ctx.method === 'GET' && !ctx.path.startsWith('/api/')
  return isPage ? safeReturnTo(homePath.slice(0, -1) + ctx.url) : '/'
}

/**
 * Returns the URL of the login route, with the `return_to` parameter unless the login returns to the start page.
 * @param prompt `login` if the provider must ask who is signing in
 */
export function signInUrl(signInPath: string, returnTo: string, prompt?: LoginPrompt): string {
  const parameters = [
    ...(prompt === undefined ? [] : [`prompt=${prompt}`]),
    ...(returnTo === '/' ? [] : [`return_to=${encodeURIComponent(returnTo)}`])
  ]
  return parameters.length === 0 ? signInPath : `${signInPath}?${parameters.join('&')}`
}

// With this limit, the `state`, which contains the path, is never longer than the callback accepts (MAX_LENGTH in
// callback.ts).
const MAX_LENGTH = 2048
// Allows printable ASCII characters except the space, the backslash and the quotation mark. Browsers interpret a
// backslash as a slash, and they may remove spaces. The path is stored in the `state` parameter as JSON. A quotation
// mark needs two characters in JSON, so many of them could make the `state` too long.
const PLAIN_PATH = /^\/[!#-[\]-~]*$/
// The percent-encodings of a slash, a backslash, a dot, a percent sign and control characters. A proxy or a page may
// decode them once more, and the path could then lead to another site.
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|2e|25|7f|[01][0-9a-f])/i
// A return path must not be one of this server's own routes. For example, the logout route would terminate the new session. The
// pattern also matches a route after a path prefix, because a reverse proxy may add a public path that this server does not see.
const AUTH_ROUTE = new RegExp(`${AUTH_PATH}(?:/|$)`, 'i')

/**
 * Returns `value` if it is a safe path and not a route of this server. Otherwise returns `/`. No browser or proxy may
 * interpret the path as the URL of another site (RFC 9700 section 4.11.1).
 */
export function safeReturnTo(value: string | undefined): string {
  if (value === undefined || value.length > MAX_LENGTH || !PLAIN_PATH.test(value)) return '/'
  const path = value.split(/[?#]/, 1)[0] as string
  if (path.includes('//') || AMBIGUOUS_ESCAPE.test(path) || path.split('/').includes('..')) return '/'
  if (AUTH_ROUTE.test(decodeAscii(path))) return '/'
  // The final check uses the WHATWG URL parser, because browsers use the same algorithm. The parser must return the same path,
  // and must not take a part of the path for a host.
  const url = URL.canParse(value, 'http://host.invalid') ? new URL(value, 'http://host.invalid') : undefined
  return url?.origin === 'http://host.invalid' && url.pathname === path ? value : '/'
}

function decodeAscii(path: string): string {
  return path.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** Redirects with 302 and without a body. The body of Koa's own redirect would contain the URL with its `state`. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
