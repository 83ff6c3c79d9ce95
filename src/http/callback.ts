import type { Context, Middleware } from 'koa'
import type { Coordination } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { LoginTransaction, LoginTransactions } from '../login/transaction.js'
import type { Metrics } from '../metrics/metrics.js'
import { abandon } from '../modes/grants.js'
import { endSession, hasEnded } from '../modes/logouts.js'
import { LoginInterruptedError } from '../modes/mode.js'
import type { Redemptions } from '../modes/redemption.js'
import type { SessionRecord } from '../session/record.js'
import { type AuthorizationResponse, parseAuthorizationResponse } from './authorization-response.js'
import type { CookieNames } from './cookies.js'
import { HttpError, providerBusy } from './errors.js'
import { type LoginCookie, readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { loginCookieMissing } from './login-loop.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'
import { sessionRecord, writeSession } from './session.js'

export interface CallbackParts {
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly redemptions: Redemptions
  readonly coordination: Coordination
  readonly cookies: CookieNames
  readonly homePath: string
  readonly signInPath: string
  readonly maxAgeSeconds: number
  readonly now: () => number
  readonly metrics: Pick<Metrics, 'callbackEnded'>
  readonly requestLog: RequestLog
}

// Some providers accept a code for no more than a minute.
const LONGEST_RETRY_SECONDS = 30

/** `GET /api/auth/callback`: the browser comes back from the identity provider (contract section 5.1, step 2). */
export function callback(parts: CallbackParts): Middleware {
  const { idp, transactions, redemptions, coordination, cookies, homePath, signInPath, maxAgeSeconds } = parts
  const { now, metrics, requestLog } = parts

  return async function callback(ctx) {
    try {
      const response = parseAuthorizationResponse(new URLSearchParams(ctx.querystring))
      // RFC 9700 section 4.7: a code must not reach the provider before it is known whose login this is.
      const loginCookie = readLoginCookie(ctx, cookies)
      const opened = transactions.open(response.state, loginCookie?.browser)
      if (opened.kind === 'foreign') throw badLogin('This login was not started in this browser.')
      if (opened.kind === 'unbound') {
        throw loginCookieMissing(cookies)
      }
      if (opened.kind === 'expired') {
        if (await liveSession(ctx)) return redirect(ctx, homePath)
        throw badLogin('This login took too long.')
      }
      await checkIssuer(response)
      if (response.kind === 'error') throw refusedLogin(response.error)
      await complete(ctx, opened.transaction, response.code, loginCookie as LoginCookie)
    } catch (error) {
      const reason = error instanceof HttpError ? error.error : (error as Error).name
      metrics.callbackEnded(reason)
      requestLog(ctx).warn({ event: 'login_failed', reason }, 'login failed')
      throw error
    }
  }

  async function complete(ctx: Context, transaction: LoginTransaction, code: string, loginCookie: LoginCookie) {
    const redemption = await redemptions.redeem(transaction, code).catch((error: unknown) => {
      const isRefusedCode = error instanceof OAuthError && error.error === 'invalid_grant'
      throw isRefusedCode
        ? badLogin('The identity provider did not accept this login any more.')
        : ifBusy(error, transaction)
    })
    const live = await liveSession(ctx)
    // Keep the current session unless it is older than the repeated one, whose refresh token may have been spent since.
    const stays =
      live && (redemption.kind === 'spent' || (redemption.kind === 'repeated' && !isOlder(live, redemption.record)))
    if (!stays) {
      if (redemption.kind === 'spent') throw badLogin('This login has been used already.')
      await writeSession(ctx, redemption.record).catch((error: unknown) => {
        abandon(idp, redemption.record.fields.refresh_token as string)
        throw error
      })
      // Neither a copy of the replaced cookie nor a late response to it may bring the replaced session back.
      if (live && live.id !== redemption.record.id) await endSession(coordination, live.id, maxAgeSeconds * 1000)
      writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: now() })
      requestLog(ctx).info({ event: 'login_succeeded' }, 'login succeeded')
    }
    metrics.callbackEnded(redemption.kind === 'fresh' ? 'succeeded' : 'repeated')
    redirect(ctx, transaction.returnTo === '/' ? homePath : transaction.returnTo)
  }

  /**
   * The error of a code exchange, or a 503 in its place if the provider is busy. Its page repeats this callback while the
   * code and the state can still be good, and otherwise begins a new login.
   */
  function ifBusy(error: unknown, { returnTo, expiresAt }: LoginTransaction): unknown {
    const isCodeSpent = error instanceof LoginInterruptedError
    const cause = isCodeSpent ? error.cause : error
    if (!(cause instanceof UpstreamError && cause.isBusy)) return error
    const newLogin = providerBusy(cause, `${signInPath}?${new URLSearchParams({ return_to: returnTo })}`)
    const { retryAfterSeconds } = newLogin
    const comesTooLate = retryAfterSeconds > LONGEST_RETRY_SECONDS || now() + retryAfterSeconds * 1000 >= expiresAt
    return isCodeSpent || comesTooLate ? newLogin : providerBusy(cause)
  }

  async function liveSession(ctx: Context): Promise<SessionRecord | undefined> {
    const record = sessionRecord(ctx)
    return record?.fields.refresh_token !== undefined && !(await hasEnded(coordination, record.id)) ? record : undefined
  }

  // RFC 9207 section 2.4: a response of another provider must not be accepted as a response of this one.
  async function checkIssuer({ iss }: AuthorizationResponse) {
    const { issuer, issParameterSupported } = await idp.metadata()
    const isMissing = iss === undefined && issParameterSupported
    if (isMissing || (iss !== undefined && issuer !== undefined && iss !== issuer)) {
      throw badLogin('This answer did not come from the configured identity provider.')
    }
  }
}

function isOlder(session: SessionRecord, other: SessionRecord): boolean {
  return session.id !== other.id && session.issuedAt < other.issuedAt
}

function badLogin(description: string): HttpError {
  return new HttpError(400, 'invalid_request', `${description} Please sign in again.`)
}

// RFC 6749 section 4.1.2.1. The provider's own text is not repeated, since anyone can write it into this address.
function refusedLogin(error: string): HttpError {
  switch (error) {
    case 'access_denied':
      return new HttpError(403, 'access_denied', 'The login was cancelled, or access was not granted.')
    case 'temporarily_unavailable':
    case 'server_error':
      return new HttpError(503, error, 'The identity provider cannot sign anyone in at the moment.', {
        'Retry-After': '5'
      })
    default:
      return new HttpError(400, error, 'The identity provider did not accept the login request.')
  }
}
