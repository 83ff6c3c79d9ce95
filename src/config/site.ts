/** The public URLs of this server and the names of its cookies. All of them are derived from the settings. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, STARTER_PAGE } from './settings.js'
import { AUTH_ROUTES, basePathOf, homeUrlOf } from './types/urls.js'

export interface Site {
  readonly cookies: CookieNames
  /** The origin of the callback URL, which is also the origin of this site's pages. */
  readonly origin: string
  /** The public path before our routes, either '' or '/path'. A reverse proxy removes this path from each request. */
  readonly basePath: string
  /** The absolute URL of the start page. */
  readonly homeUrl: string
  /** The public path of the start page. */
  readonly homePath: string
  /** True if a page may exist at the URL of the start page. Otherwise error pages do not link to that URL. */
  readonly hasStartPage: boolean
  /** The public path of the login route. */
  readonly loginPath: string
}

export function createSite(config: Config): Site {
  const { wwwroot = STARTER_PAGE, fallback, extension } = config
  const { callbackUrl } = config.platform
  const basePath = basePathOf(callbackUrl)
  return {
    cookies: cookieNames(config.session.cookieName, callbackUrl),
    origin: new URL(callbackUrl).origin,
    basePath,
    homeUrl: homeUrlOf(callbackUrl),
    homePath: `${basePath}/`,
    hasStartPage: fallback !== undefined || extension !== undefined || existsSync(join(wwwroot, 'index.html')),
    loginPath: `${basePath}${AUTH_ROUTES.login}`
  }
}

export interface CookieNames {
  readonly session: string
  readonly login: string
  /** True if browsers may send the cookies only over https. */
  readonly secure: boolean
}

/**
 * Returns the cookie names. They depend on the callback URL and not on the request, because a client can forge the
 * headers of its request. With https, the prefix `__Host-` makes browsers reject a cookie that a neighbouring host or a
 * plain-http page tries to set (RFC 6265bis section 4.1.3.2).
 */
export function cookieNames(cookieName: string, callbackUrl: string): CookieNames {
  const secure = new URL(callbackUrl).protocol === 'https:'
  const session = secure && !cookieName.startsWith('__Host-') ? `__Host-${cookieName}` : cookieName
  return { session, login: `${session}_login`, secure }
}
