import type { Middleware } from 'koa'
import type { Auth } from '../../auth.js'
import { safeReturnTo } from '../../login/return-to.js'
import { newBrowserId } from '../../login/transaction.js'
import type { Metrics } from '../../metrics/metrics.js'
import { readCookie } from '../../session/cookie-header.js'
import type { RequestLog } from '../edge/request.js'
import { otherLoopbackName, sessionCookieMissing } from '../errors/missing-cookie.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { redirect } from './redirect.js'
import { rememberReturnTo } from './return-path.js'
import type { Site } from './site.js'

export interface LoginParts {
  readonly auth: Pick<Auth, 'beginLogin'>
  readonly site: Site
  readonly metrics: Pick<Metrics, 'loginStarted'>
  readonly requestLog: RequestLog
}

/**
 * `GET /api/auth/login` redirects to the identity provider (service contract, section 5.1, step 1). It does not change
 * the session.
 */
export function login({ auth, site, metrics, requestLog }: LoginParts): Middleware {
  const { cookies } = site
  const { host: callbackHost } = new URL(site.homeUrl)

  return async function login(ctx) {
    const [requested, ...more] = new URLSearchParams(ctx.querystring).getAll('return_to')
    const returnTo = safeReturnTo(more.length === 0 ? requested : undefined)
    rememberReturnTo(ctx, returnTo)
    const startedAt = otherLoopbackName(ctx, callbackHost)
    const { browserId = newBrowserId(), succeededAt } = readLoginCookie(ctx, cookies) ?? {}
    writeLoginCookie(ctx, cookies, { browserId, succeededAt: undefined })
    const hasSessionCookie = readCookie(ctx.get('Cookie'), cookies.session) !== undefined
    const begun = await auth.beginLogin({ browserId, returnTo, startedAt, succeededAt, hasSessionCookie })
    if (begun.kind === 'loop') {
      requestLog(ctx).warn({ event: 'session_cookie_missing' }, 'a session cookie that was just set did not come back')
      throw sessionCookieMissing({ isOtherHost: ctx.host !== callbackHost, startedAt })
    }
    metrics.loginStarted()
    requestLog(ctx).debug({ event: 'login_started' }, 'login started')
    redirect(ctx, begun.location)
  }
}
