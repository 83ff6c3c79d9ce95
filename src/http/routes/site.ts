/** The public addresses of this server and the names of its cookies. All of them derive from the settings. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AUTH_ROUTES, basePathOf, homeUrlOf } from '../../config/addresses.js'
import type { Config } from '../../config/settings.js'
import { STARTER_PAGE } from '../../config/wwwroot.js'
import { type CookieNames, cookieNames } from './session.js'

export interface Site {
  readonly cookies: CookieNames
  /** The origin of the callback URL. */
  readonly origin: string
  /** The public path in front of our routes, either '' or '/path'. A reverse proxy removes it from each request. */
  readonly basePath: string
  /** The absolute address of the start page. */
  readonly homeUrl: string
  /** The public path of the start page. */
  readonly homePath: string
  /** True if a page may exist at the address of the start page. Otherwise error pages do not link to that address. */
  readonly hasStartPage: boolean
  /** The public path of the login route. */
  readonly loginPath: string
}

export function createSite(config: Config): Site {
  const { callbackUrl } = config.platform
  const basePath = basePathOf(callbackUrl)
  return {
    cookies: cookieNames(config.session.cookieName, callbackUrl),
    origin: new URL(callbackUrl).origin,
    basePath,
    homeUrl: homeUrlOf(callbackUrl),
    homePath: `${basePath}/`,
    hasStartPage: hasStartPage(config),
    loginPath: `${basePath}${AUTH_ROUTES.login}`
  }
}

function hasStartPage({ wwwroot = STARTER_PAGE, fallback, extend }: Config): boolean {
  return fallback !== undefined || extend !== undefined || existsSync(join(wwwroot, 'index.html'))
}
