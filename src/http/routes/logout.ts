import type { Middleware } from 'koa'
import type { Auth } from '../../auth.js'
import type { RequestLog } from '../edge/request.js'
import { clearLoginCookie } from './login-cookie.js'
import { redirect } from './redirect.js'
import { publicPathOf, requestedReturnTo } from './return-path.js'
import { removeSession, sessionRecord } from './session.js'
import type { Site } from './site.js'

export interface LogoutParts {
  readonly auth: Pick<Auth, 'logOut'>
  readonly site: Site
  readonly requestLog: RequestLog
}

/**
 * `GET /api/auth/logout` ends the session. It redirects to the page in the parameter `return_to`, which is the start
 * page by default. With `logout: idp`, it redirects to the provider's logout page instead. The provider accepts only
 * registered addresses to return to, so the parameter then has no effect.
 */
export function logout({ auth, site, requestLog }: LogoutParts): Middleware {
  return async function logout(ctx) {
    const endSessionUrl = await auth.logOut(sessionRecord(ctx), requestLog(ctx))
    removeSession(ctx)
    clearLoginCookie(ctx, site.cookies)
    redirect(ctx, endSessionUrl ?? publicPathOf(requestedReturnTo(ctx), site.homePath))
  }
}
