import type { Middleware } from 'koa'
import type { IdentityProvider } from '../idp/client.js'
import { safeReturnTo } from '../login/return-to.js'
import { type LoginTransactions, newBrowserId } from '../login/transaction.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Mode } from '../modes/mode.js'
import type { CookieNames } from './cookies.js'
import { readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { isLoginLoop, otherLoopbackName, sessionCookieMissing } from './login-loop.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'
import { rememberReturnTo } from './return-path.js'

export interface LoginParts {
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly cookies: CookieNames
  readonly pkce: boolean
  /** Longest lifetime of a session. */
  readonly maxAgeSeconds: number
  readonly homeUrl: string
  readonly now: () => number
  readonly metrics: Pick<Metrics, 'loginStarted'>
  readonly requestLog: RequestLog
}

/**
 * `GET /api/auth/login` redirects to the identity provider (contract section 5.1, step 1). It does not change the
 * session.
 */
export function login(parts: LoginParts): Middleware {
  const { mode, idp, transactions, cookies, pkce, maxAgeSeconds, homeUrl, now, metrics, requestLog } = parts
  const wantsIdToken = mode.loginScope.split(' ').includes('openid')
  const { host: callbackHost } = new URL(homeUrl)
  return async function login(ctx) {
    const [requested, ...more] = new URLSearchParams(ctx.querystring).getAll('return_to')
    const returnTo = safeReturnTo(more.length === 0 ? requested : undefined)
    rememberReturnTo(ctx, returnTo)
    const startedAt = otherLoopbackName(ctx, callbackHost)
    const loginCookie = readLoginCookie(ctx, cookies)
    const browserId = loginCookie?.browserId ?? newBrowserId()
    writeLoginCookie(ctx, cookies, { browserId, succeededAt: undefined })
    if (loginCookie && isLoginLoop(ctx, cookies, loginCookie, { now: now(), maxAgeSeconds })) {
      requestLog(ctx).warn({ event: 'session_cookie_missing' }, 'a session cookie that was just set did not come back')
      throw sessionCookieMissing({ isOtherHost: ctx.host !== callbackHost, startedAt })
    }
    const { state, nonce, codeChallenge } = transactions.begin(browserId, returnTo, startedAt)
    const location = await idp.authorizationUrl({
      scope: mode.loginScope,
      state,
      nonce: wantsIdToken ? nonce : undefined,
      codeChallenge: pkce ? codeChallenge : undefined
    })
    metrics.loginStarted()
    requestLog(ctx).debug({ event: 'login_started' }, 'login started')
    redirect(ctx, location)
  }
}
