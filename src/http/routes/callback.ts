import type { Context, Middleware } from 'koa'
import type { CompletedLogin, CompleteLogin } from '../../login/complete-login.js'
import type { Metrics } from '../../metrics/metrics.js'
import { denialFields } from '../../modes/access.js'
import type { RequestLog } from '../edge/request.js'
import { HttpError } from '../errors/http-error.js'
import { failedLogin } from '../errors/login-error.js'
import { parseAuthorizationResponse } from './authorization-response.js'
import { type LoginCookie, readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { redirect } from './redirect.js'
import { publicPathOf, rememberReturnTo } from './return-path.js'
import { currentSession, writeSession } from './session.js'
import type { Site } from './site.js'

export interface CallbackParts {
  readonly completeLogin: CompleteLogin
  readonly site: Site
  readonly metrics: Pick<Metrics, 'callbackEnded'>
  readonly requestLog: RequestLog
}

/**
 * `GET /api/auth/callback` completes a login after the identity provider has redirected the browser here (service
 * contract, section 5.1, step 2).
 */
export function callback({ completeLogin, site, metrics, requestLog }: CallbackParts): Middleware {
  const { cookies, homePath } = site

  return async function callback(ctx) {
    let completed: CompletedLogin | undefined
    try {
      const response = parseAuthorizationResponse(new URLSearchParams(ctx.querystring))
      const loginCookie = readLoginCookie(ctx, cookies)
      const { browserId } = loginCookie ?? {}
      completed = await completeLogin({ response, browserId, session: currentSession(ctx) })
      if (completed.kind !== 'foreign') rememberReturnTo(ctx, completed.returnTo)
      redirect(ctx, applyToResponse(ctx, completed, loginCookie))
    } catch (error) {
      const reason = error instanceof HttpError ? error.error : (error as Error).name
      const access = completed?.kind === 'denied' ? denialFields(completed.denial) : {}
      metrics.callbackEnded(reason)
      requestLog(ctx).warn({ event: 'login_failed', reason, ...access }, 'login failed')
      throw error
    }
  }

  /** Sets the cookies of a successful login and returns the address to redirect to. Throws if the login failed. */
  function applyToResponse(ctx: Context, completed: CompletedLogin, loginCookie: LoginCookie | undefined): string {
    switch (completed.kind) {
      case 'signedIn': {
        const { session, sealed, succeededAt, isRepeated, returnTo } = completed
        writeSession(ctx, session, sealed)
        if (loginCookie) writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt })
        requestLog(ctx).info({ event: 'login_succeeded' }, 'login succeeded')
        metrics.callbackEnded(isRepeated ? 'repeated' : 'succeeded')
        return publicPathOf(returnTo, homePath)
      }
      case 'kept':
        metrics.callbackEnded('repeated')
        return publicPathOf(completed.returnTo, homePath)
      case 'expired':
        if (completed.isSignedIn) return homePath
        throw failedLogin(completed, site)
      case 'failed':
        throw completed.error
      default:
        throw failedLogin(completed, site)
    }
  }
}
