/** The public URLs of this server and the names of its cookies. All of them are derived from the settings. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, STARTER_PAGE } from './settings.js'
import { AUTH_ROUTES, basePathOf, homeUrlOf } from './types/urls.js'

export type Site = ReturnType<typeof createSite>

export function createSite(config: Config) {
  const { wwwroot = STARTER_PAGE, fallback, extension } = config
  const { callbackUrl } = config.platform
  const basePath = basePathOf(callbackUrl)
  return {
    cookies: cookieNames(config.session.cookieName, callbackUrl),
    /** The origin of the callback URL, which is also the origin of this site's pages. */
    origin: new URL(callbackUrl).origin,
    /** The public path before our routes, either '' or '/path'. A reverse proxy removes this path from each request. */
    basePath,
    /** The absolute URL of the start page. */
    homeUrl: homeUrlOf(callbackUrl),
    /** The public path of the start page. */
    homePath: `${basePath}/`,
    /** True if a page may exist at the URL of the start page. Otherwise error pages do not link to that URL. */
    hasStartPage: fallback !== undefined || extension !== undefined || existsSync(join(wwwroot, 'index.html')),
    /** The public path of the login route. */
    loginPath: `${basePath}${AUTH_ROUTES.login}`
  }
}

export type CookieNames = ReturnType<typeof cookieNames>

/**
 * Returns the cookie names. They depend on the callback URL and not on the request, because a client can forge the
 * headers of its request. With https, the prefix `__Host-` makes browsers reject a cookie that a neighbouring host or a
 * plain-http page tries to set (RFC 6265bis section 4.1.3.2). `secure` is true if browsers may send the cookies only over https.
 * `outage` has the time of the first page about an outage.
 */
export function cookieNames(cookieName: string, callbackUrl: string) {
  const secure = new URL(callbackUrl).protocol === 'https:'
  const session = secure && !cookieName.startsWith('__Host-') ? `__Host-${cookieName}` : cookieName
  return { session, login: `${session}_login`, outage: `${session}_outage`, secure }
}
