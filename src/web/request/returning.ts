/**
 * Determines the page to which a browser returns after a login or a logout. It also determines the page for the new
 * login that error pages offer.
 */

import type { Context } from 'koa'
import { mayMatch } from '../../config/types/path-pattern.js'
import { isAuthPath } from '../../config/types/urls.js'
import { safeReturnTo } from '../../login/safe-return-to.js'
import type { Services } from '../middleware-services.js'
import { notesOf, requestLog } from './request.js'

/**
 * Reads the return path from one of two parameters. `return_to` is percent-encoded. `return_to_raw` is for gateways that
 * cannot encode a URL, such as nginx. It must be the last parameter, because its value is the rest of the query,
 * undecoded.
 * @returns `returnTo`, a safe path of this origin, by default `/`, and the parameters without a raw return path, whose query may
 *   contain the same names
 */
export function readReturningQuery(ctx: Context, { site, log }: Pick<Services, 'site' | 'log'>) {
  const { querystring } = ctx
  const [, before = '', raw] = /^(?:(.*?)&)??return_to_raw=(.*)$/.exec(querystring) ?? ['', querystring]
  const parameters = new URLSearchParams(before)
  const values = parameters.getAll('return_to')
  if (raw !== undefined) values.push(raw)
  const [value = '', ...others] = values
  if (value === '' && others.length === 0) return { returnTo: '/', parameters }
  const wanted = others.length === 0 ? withoutOrigin(value, new URL(site.origin).host) : ''
  return { returnTo: safeReturnTo(wanted, () => noteChangedPath(ctx, log)), parameters }
}

/** Tells the operator why a browser does not return to the page that it came from. */
function noteChangedPath(ctx: Context, log: Services['log']): void {
  const message = 'a return path is too long or not safe, so it lost its fragment or its query, or became /'
  requestLog(ctx, log).info({ event: 'return_path_changed' }, message)
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
 * Creates the function that replaces a path with `/` if it may belong to a proxy rule with `no-links`. A link on another site can
 * choose the return path, and after some redirects the browser says that this site has started them.
 */
export function createAcceptedReturn({ config, site, log }: Pick<Services, 'config' | 'site' | 'log'>) {
  const { basePath } = site
  const withoutLinks = config.apiProxy.rules.flatMap(({ acceptsLinks, path }) => (acceptsLinks ? [] : [path]))
  return function acceptedReturn(ctx: Context, returnTo: string): string {
    const [publicPath = ''] = returnTo.split(/[?#]/, 1)
    const path = publicPath.startsWith(`${basePath}/`) ? publicPath.slice(basePath.length) : publicPath
    if (!mayMatch(withoutLinks, path)) return returnTo
    noteChangedPath(ctx, log)
    return '/'
  }
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

/**
 * Returns the path and query to which the next login should return. If this request belongs to a failed login, the
 * result is the return path of that login. Otherwise, the result is the URL of a GET request. For other methods, it is the page of
 * the form, if that page is of this origin. If a reverse proxy has removed a base path from the request, this function adds it again.
 */
export function returnToOf(ctx: Context, { site, log }: Pick<Services, 'site' | 'log'>): string {
  const { homePath, origin } = site
  const { login } = notesOf(ctx)
  if (login) return login.returnTo
  // A login never returns to a route of this server.
  if (isAuthPath(ctx.path)) return '/'
  // Only these pages have a sign-in. Scanners get 400 or 404 for unsafe paths all the time.
  const onChange = () => (ctx.status === 401 || ctx.status >= 500) && noteChangedPath(ctx, log)
  // `originalUrl`, because an application that mounts another one shortens `url`.
  if (ctx.method === 'GET') return safeReturnTo(homePath.slice(0, -1) + ctx.originalUrl, onChange)
  const referer = ctx.get('Referer')
  return referer.startsWith(`${origin}/`) ? safeReturnTo(referer.slice(origin.length), onChange) : '/'
}

/**
 * Returns the URL of the login route, with the `return_to` parameter unless the login returns to the start page.
 * @param prompt the prompt for the provider, such as `login` if it must ask who is signing in
 */
export function signInUrl(signInPath: string, returnTo: string, prompt?: string): string {
  const parameters = [
    ...(prompt === undefined ? [] : [`prompt=${prompt}`]),
    ...(returnTo === '/' ? [] : [`return_to=${encodeURIComponent(returnTo)}`])
  ]
  return parameters.length === 0 ? signInPath : `${signInPath}?${parameters.join('&')}`
}

const RESTARTED = 'restarted'

/** Returns the URL of the login route for a login that this server starts again by itself. */
export function restartUrl(loginPath: string, returnTo: string, prompt: string | undefined): string {
  const parameters = new URLSearchParams({
    [RESTARTED]: 'true',
    ...(prompt !== undefined && { prompt }),
    return_to: returnTo
  })
  return `${loginPath}?${parameters}`
}

/** True for a URL from `restartUrl`. Anybody can add this parameter, and then only gets an error page earlier. */
export function isRestarted(parameters: URLSearchParams): boolean {
  return parameters.has(RESTARTED)
}

/** Redirects with 302 and without a body. The body of Koa's own redirect would contain the URL with its `state`. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
