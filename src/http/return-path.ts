/** Error pages offer to sign in again. This file determines the page to which that login returns. */
import type { Context } from 'koa'
import { safeReturnTo } from '../login/return-to.js'

const returnPaths = new WeakMap<Context, string>()

/** Called by the login and callback routes as soon as they know the return path of their login. */
export function rememberReturnTo(ctx: Context, returnTo: string): void {
  returnPaths.set(ctx, returnTo)
}

/**
 * Returns the path and query to which the next login should return. This is the return path of the login that failed.
 * Without one it is the address of this request if that is a page of the site, otherwise `/`.
 * @param homePath public path of the start page; a proxy may have removed it, without its last slash, from the request
 */
export function returnToOf(ctx: Context, homePath: string): string {
  const remembered = returnPaths.get(ctx)
  if (remembered !== undefined) return remembered
  const isPage = ctx.method === 'GET' && !ctx.path.startsWith('/api/')
  return isPage ? safeReturnTo(homePath.slice(0, -1) + ctx.url) : '/'
}

/** Returns the address of the login route. The parameter `return_to` is left out for the start page. */
export function signInAddress(signInPath: string, returnTo: string): string {
  return returnTo === '/' ? signInPath : `${signInPath}?return_to=${encodeURIComponent(returnTo)}`
}
