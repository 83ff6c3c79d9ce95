/**
 * The page to which a browser returns after a login or a logout. Error pages offer a new login, and this file also
 * determines the page to which that login returns.
 */

import type { Context } from 'koa'
import type { LoginPrompt } from '../../login/begin-login.js'
import { safeReturnTo } from '../../login/return-to.js'

/** Returns the path and query in the parameter `return_to` if it is safe, otherwise `/`. */
export function requestedReturnTo(ctx: Context): string {
  const [requested, ...more] = new URLSearchParams(ctx.querystring).getAll('return_to')
  return safeReturnTo(more.length === 0 ? requested : undefined)
}

/**
 * Returns the public path of a return path. The return path `/` means the start page. If a reverse proxy removes a base
 * path from each request, the browser needs the start page with this base path. All other return paths came from the
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
 * Returns the path and query to which the next login should return. If this request belongs to a failed login, this is
 * the return path of that login. Otherwise, if this request is for a page, it is the address of that page. For all other
 * requests it is `/`.
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
 * Returns the address of the login route. The parameter `return_to` is left out for the start page.
 * @param prompt `login` if the provider must ask who is signing in
 */
export function signInAddress(signInPath: string, returnTo: string, prompt?: LoginPrompt): string {
  const parameters = [
    ...(prompt === undefined ? [] : [`prompt=${prompt}`]),
    ...(returnTo === '/' ? [] : [`return_to=${encodeURIComponent(returnTo)}`])
  ]
  return parameters.length === 0 ? signInPath : `${signInPath}?${parameters.join('&')}`
}
