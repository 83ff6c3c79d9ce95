import type { Middleware } from 'koa'
import type { IdentityProvider } from '../idp/client.js'
import { safeReturnTo } from '../login/return-to.js'
import { LOGIN_MAX_AGE_SECONDS, type LoginTransactions } from '../login/transaction.js'
import type { Mode } from '../modes/mode.js'
import { readCookie } from '../session/cookie-header.js'
import { type CookieNames, setCookie } from './cookies.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'

export interface LoginParts {
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly cookies: CookieNames
  readonly pkce: boolean
  readonly requestLog: RequestLog
}

/** `GET /api/auth/login`: off to the identity provider (contract section 5.1, step 1). The session is not touched. */
export function login({ mode, idp, transactions, cookies, pkce, requestLog }: LoginParts): Middleware {
  const wantsIdToken = mode.loginScope.split(' ').includes('openid')
  return async function login(ctx) {
    const loginCookie = transactions.loginCookie(readCookie(ctx.get('Cookie'), cookies.login))
    const [returnTo, ...more] = new URLSearchParams(ctx.querystring).getAll('return_to')
    const { state, nonce, codeChallenge } = transactions.begin(
      loginCookie,
      safeReturnTo(more.length === 0 ? returnTo : undefined)
    )
    const location = await idp.authorizationUrl({
      scope: mode.loginScope,
      state,
      nonce: wantsIdToken ? nonce : undefined,
      codeChallenge: pkce ? codeChallenge : undefined
    })
    setCookie(ctx, cookies.login, loginCookie, LOGIN_MAX_AGE_SECONDS, cookies.secure)
    requestLog(ctx).debug({ event: 'login_started' }, 'login started')
    redirect(ctx, location)
  }
}
