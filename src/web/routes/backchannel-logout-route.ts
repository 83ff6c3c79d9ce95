/** The route for logout tokens. It exists only with the setting `platform.backchannelLogout`. */
import type { Middleware } from 'koa'
import { readBody } from '../../base/read-body.js'
import { closingError, invalidRequest } from '../errors/http-error.js'
import type { Services } from '../middleware-services.js'
import { requestLog } from '../request/request.js'

// A logout token has about 1,000 characters, so this limit is sufficient.
const MAX_BODY_BYTES = 16 * 1024
const FORM = /^application\/x-www-form-urlencoded *(;|$)/i

/**
 * `POST /api/auth/backchannel-logout` takes a logout token from the identity provider (OpenID Connect Back-Channel
 * Logout section 2.5). It ignores the session cookie of the request, so it does not check the origin. It responds with
 * 200 without a body, or 400 if the request or the token cannot be used (section 2.8). If the same token may be usable
 * later, it responds with 503 and `Retry-After`.
 */
export function backchannelLogout(loading: NonNullable<Services['backchannelLogout']>, { log }: Services): Middleware {
  return async function backchannelLogoutRoute(ctx) {
    if (!FORM.test(ctx.get('Content-Type')))
      throw closingError(400, 'The body must be application/x-www-form-urlencoded.')
    const body = await readBody(ctx.req, MAX_BODY_BYTES).catch(() => {
      throw closingError(400, 'The body is not complete.')
    })
    if (body === undefined) throw closingError(400, `The body must not be longer than ${MAX_BODY_BYTES} bytes.`)
    const [token, ...more] = new URLSearchParams(body).getAll('logout_token')
    if (token === undefined || more.length > 0) throw invalidRequest('The body must contain one logout_token.')
    const endSessions = await loading
    if (!(await endSessions(token, requestLog(ctx, log)))) throw invalidRequest('The logout token cannot be used.')
    // Koa sets the status 204 when the body is set to null, so the status 200 is set afterwards.
    ctx.body = null
    ctx.status = 200
  }
}
