import type { Context, Middleware } from 'koa'
import type { CodeExchanges, Denial } from '../auth/code-exchange.js'
import { isLoggedOut, markLoggedOut } from '../auth/logout-marks.js'
import { type Coordination, CoordinationError } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { UpstreamError } from '../idp/errors.js'
import type { LoginTransaction, LoginTransactions } from '../login/transaction.js'
import type { Metrics } from '../metrics/metrics.js'
import { abandon } from '../modes/grants.js'
import { LoginInterruptedError } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import { type AuthorizationResponse, parseAuthorizationResponse } from './authorization-response.js'
import type { CookieNames } from './cookies.js'
import { BusyError, HttpError, providerBusy } from './errors.js'
import { type LoginCookie, readLoginCookie, writeLoginCookie } from './login-cookie.js'
import { loginCookieMissing } from './login-loop.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'
import { rememberReturnTo } from './return-path.js'
import { sessionRecord, writeSession } from './session.js'

export interface CallbackParts {
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly codeExchanges: CodeExchanges
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
  const { idp, transactions, codeExchanges, coordination, cookies, homePath, signInPath, maxAgeSeconds } = parts
  const { now, metrics, requestLog } = parts

  return async function callback(ctx) {
    try {
      const response = parseAuthorizationResponse(new URLSearchParams(ctx.querystring))
      // RFC 9700 section 4.7: a code must not reach the provider before it is known whose login this is.
      const loginCookie = readLoginCookie(ctx, cookies)
      const opened = transactions.open(response.state, loginCookie?.browserId)
      if (opened.kind === 'foreign') throw badLogin('This login was not started in this browser.')
      rememberReturnTo(ctx, opened.kind === 'valid' ? opened.transaction.returnTo : opened.returnTo)
      if (opened.kind === 'unbound') {
        throw loginCookieMissing(cookies, opened.startedAt)
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
      const access = error instanceof AccessDeniedError ? { access: error.denial } : {}
      metrics.callbackEnded(reason)
      requestLog(ctx).warn({ event: 'login_failed', reason, ...access }, 'login failed')
      throw error
    }
  }

  async function complete(ctx: Context, transaction: LoginTransaction, code: string, loginCookie: LoginCookie) {
    const exchange = await codeExchanges.exchange(transaction, code).catch((error: unknown) => {
      throw ifBusy(error, transaction)
    })
    if (exchange.kind === 'refused') throw badLogin('The identity provider did not accept this login any more.')
    if (exchange.kind === 'denied') throw new AccessDeniedError(exchange.reason)
    const live = await liveSession(ctx)
    // Keep the current session unless it is older than the repeated one, whose refresh token may have been spent since.
    const stays =
      live && (exchange.kind === 'used' || (exchange.kind === 'repeated' && !isOlder(live, exchange.record)))
    if (!stays) {
      if (exchange.kind === 'used') throw badLogin('This login has been used already.')
      try {
        writeSession(ctx, exchange.record)
      } catch (error) {
        abandon(idp, exchange.record.fields.refresh_token as string)
        throw error
      }
      // Neither a copy of the replaced cookie nor a late response to it may bring the replaced session back.
      if (live && live.id !== exchange.record.id) await markLoggedOut(coordination, live.id, maxAgeSeconds * 1000)
      writeLoginCookie(ctx, cookies, { ...loginCookie, succeededAt: now() })
      requestLog(ctx).info({ event: 'login_succeeded' }, 'login succeeded')
    }
    metrics.callbackEnded(exchange.kind === 'fresh' ? 'succeeded' : 'repeated')
    redirect(ctx, transaction.returnTo === '/' ? homePath : transaction.returnTo)
  }

  /**
   * The error of a code exchange, or a 503 in its place if the provider is busy. Its page repeats this callback while the
   * code and the state can still be good, and otherwise begins a new login.
   */
  function ifBusy(error: unknown, { returnTo, expiresAt }: LoginTransaction): unknown {
    // The exchange goes on, and its result is kept: the page's next attempt finds it.
    if (error instanceof CoordinationError && error.problem === 'pending') return slowExchange(error.retryAfterSeconds)
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
    return record?.fields.refresh_token !== undefined && !(await isLoggedOut(coordination, record.id))
      ? record
      : undefined
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

/** The account may not sign in here. The response does not say why; the log does. */
class AccessDeniedError extends HttpError {
  readonly denial: Denial

  constructor(denial: Denial) {
    super(403, 'account_not_allowed', 'This account may not sign in to this application.')
    this.name = 'AccessDeniedError'
    this.denial = denial
  }
}

function isOlder(session: SessionRecord, other: SessionRecord): boolean {
  return session.id !== other.id && session.issuedAt < other.issuedAt
}

function slowExchange(retryAfterSeconds: number): BusyError {
  return new BusyError('The identity provider has not answered in time.', retryAfterSeconds, { status: 504 })
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
