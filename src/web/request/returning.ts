/**
 * Determines the page to which a browser returns after a login or a logout. It also determines the page for the new
 * login that error pages offer.
 */

import type { Context } from 'koa'
import type { LoginPrompt } from '../../login/begin-login.js'
import { safeReturnTo } from '../../login/safe-return-to.js'
import type { Services } from '../services.js'

/** The parameters of a request for a login or a logout. */
interface ReturningQuery {
  /** A safe path of this origin, by default `/`. */
  readonly returnTo: string
  /** The parameters without a raw return path, whose query may contain the same names. */
  readonly parameters: URLSearchParams
}

/**
 * Reads the return path from one of two parameters. `return_to` is percent-encoded. `return_to_raw` is for gateways that
 * cannot encode a URL, such as nginx. It must be the last parameter, because its value is the rest of the query,
 * undecoded.
 */
export function readReturningQuery(
  { querystring }: Pick<Context, 'querystring'>,
  { origin }: Pick<Services['site'], 'origin'>
): ReturningQuery {
  const [, before = '', raw] = /^(?:(.*?)&)??return_to_raw=(.*)$/.exec(querystring) ?? ['', querystring]
  const parameters = new URLSearchParams(before)
  const values = parameters.getAll('return_to')
  if (raw !== undefined) values.push(raw)
  const [value, ...others] = values
  const isSingle = value !== undefined && others.length === 0
  return { returnTo: safeReturnTo(isSingle ? withoutOrigin(value, new URL(origin).host) : undefined), parameters }
}

/**
 * Removes the scheme and the host of this server from a URL, because Traefik and ingress controllers send whole URLs. The scheme may
 * differ, because a gateway may not know that a load balancer terminates TLS. The browser only gets the path.
 */
function withoutOrigin(value: string, host: string): string {
  const [, ofValue, path = ''] = /^https?:\/\/([^/?#\\]*)(.*)$/is.exec(value) ?? []
  return ofValue?.toLowerCase() === host ? path || '/' : value
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
 * result is the return path of that login. Otherwise, the result is the URL of a GET request. For other methods, it is the page of
 * the form, if that page is of this origin.
 * @param site.homePath the public path of the start page, for example `/app/`. In this example, a reverse proxy has removed
 *   `/app` from the request, so this function adds it again.
 */
export function returnToOf(
  ctx: LoginContext,
  { homePath, origin }: Pick<Services['site'], 'homePath' | 'origin'>
): string {
  const remembered = ctx[RETURN_TO]
  if (remembered !== undefined) return remembered
  // `originalUrl`, because an application that mounts another one shortens `url`.
  if (ctx.method === 'GET') return safeReturnTo(homePath.slice(0, -1) + ctx.originalUrl)
  const referer = ctx.get('Referer')
  return referer.startsWith(`${origin}/`) ? safeReturnTo(referer.slice(origin.length)) : '/'
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

/** Redirects with 302 and without a body. The body of Koa's own redirect would contain the URL with its `state`. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
