import type { Context, Middleware } from 'koa'
import type { LogOut } from '../../login/log-out.js'
import { invalidRequest } from '../errors/http-error.js'
import { checkOrigin } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { requestLog } from '../request/request.js'
import { publicPathOf, readReturningQuery, redirect } from '../request/returning.js'
import { clearLoginCookie, openSession, removeSession } from '../request/session.js'

/**
 * `GET /api/auth/logout` terminates the session. It redirects to the page in the `return_to` parameter, by default the
 * start page. With `logout.idp`, it redirects to the provider's logout page instead. In that case, the parameter has
 * no effect, because the provider redirects only to registered URLs. With `everywhere=true`, the route terminates all
 * sessions of the user, and responds with 403 to links on other sites and to requests that do not show where they come
 * from.
 */
export function logout(services: Services): Middleware {
  const { logOut, logOutEverywhere, site, log } = services
  return async function logout(ctx) {
    const { returnTo, parameters } = readReturningQuery(ctx, services)
    const logOutAsked = isEverywhere(parameters) ? everywhere(ctx) : logOut
    const endSessionUrl = await logOutAsked(openSession(ctx, services), requestLog(ctx, log))
    removeSession(ctx)
    clearLoginCookie(ctx, site.cookies)
    redirect(ctx, endSessionUrl ?? publicPathOf(returnTo, site.homePath))
  }

  function everywhere(ctx: Context): LogOut {
    checkOrigin(ctx, 'logoutEverywhere', { publicOrigin: site.origin })
    if (logOutEverywhere) return logOutEverywhere
    const description =
      'No session was terminated, because this server does not know the other sessions of a user (setting platform.backchannelLogout).'
    throw invalidRequest(description)
  }
}

/** @throws HttpError 400 if the parameter has a value other than `true` */
function isEverywhere(parameters: URLSearchParams): boolean {
  const values = parameters.getAll('everywhere')
  if (values.length > 1 || (values.length === 1 && values[0] !== 'true'))
    throw invalidRequest('The value of the parameter "everywhere" must be true.')
  return values.length === 1
}
