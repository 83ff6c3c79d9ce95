/** The paths of the server's own routes. The public paths may begin with a base path of a reverse proxy (`basePathOf`). */

/** The routes of login, logout and tokens are below this path. */
export const AUTH_PATH = '/api/auth'

export const AUTH_ROUTES = {
  login: `${AUTH_PATH}/login`,
  callback: `${AUTH_PATH}/callback`,
  logout: `${AUTH_PATH}/logout`,
  backChannelLogout: `${AUTH_PATH}/backchannel-logout`,
  profile: `${AUTH_PATH}/profile`,
  token: `${AUTH_PATH}/token`
} as const

export const HEALTH_ROUTES = { healthz: '/healthz', readyz: '/readyz' } as const

/** True for `/api/auth` and every path below it. */
export function isAuthPath(path: string): boolean {
  return path.startsWith(AUTH_PATH) && (path.length === AUTH_PATH.length || path[AUTH_PATH.length] === '/')
}
