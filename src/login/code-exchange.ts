/**
 * Exchanges the authorization code of a login for tokens. A code can be used only once, so all requests of the same callback
 * share one exchange. A login creates revision 1 of a session. The revision is a number that grows with each stored token
 * response and each stored change. The session id is derived from the login, so a repeated callback finds the same session.
 */
import type { Logger } from 'pino'
import { wait, withinOrUndefined } from '../base/clock.js'
import type { Config } from '../config/settings.js'
import { isKeptInRedis, type SessionRecord } from '../cookie/record.js'
import { requireStorable } from '../cookie/session-cookie.js'
import type { IdentityProvider } from '../provider/client.js'
import { OAuthError, ProviderError, rescuedRefreshToken } from '../provider/errors.js'
import { needsCheck } from '../sessions/access-check.js'
import { DEFAULT_RETRY_SECONDS, pausedError, pauseIfBusy } from '../sessions/failure.js'
import { acquireLease, type LeaseDependencies, patience } from '../sessions/lease.js'
import type { SessionKey } from '../sessions/redis-cells.js'
import type { GrantedLease } from '../sessions/store.js'
import type { UserSessions } from '../sessions/user-sessions.js'
import { type Access, type CheckedClaims, type Denial, denialOf, endReasonOf } from './access.js'
import type { TokenState } from './grants.js'
import { revokeInBackground } from './grants.js'
import { createInternalTokenWatch } from './internal-token-watch.js'
import type { ExchangedCode, Mode, TokenStep } from './mode.js'
import type { LoginTransaction } from './transaction.js'

interface CodeExchangeDependencies extends LeaseDependencies {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue' | 'revokeRefreshToken' | 'metadata' | 'userInfo'>
  readonly log: Pick<Logger, 'warn'>
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  /** Decides which accounts may sign in. If undefined, all accounts may sign in. */
  readonly access: Access | undefined
  /** Undefined unless `platform.backChannelLogout` is on. */
  readonly userSessions: Pick<UserSessions, 'join' | 'addNames'> | undefined
  /** The setting `session.store`. */
  readonly sessionStore: Config['session']['store']
}

/**
 * - `fresh`: this call exchanged the code, or waited for the call that exchanged it
 * - `repeated`: an earlier call exchanged the code, but the browser may not have received its response
 * - `used`: an earlier call exchanged the code, but the session is over
 * - `codeRejected`: the identity provider rejected the code
 * - `denied`: the account may not sign in here; its refresh token is revoked
 * - `signedOut`: the identity provider has signed the user out since the login began; the refresh token is revoked
 * - `pending`: the exchange has not ended yet; a later call gets its result
 */
export type CodeExchange =
  | { readonly kind: 'fresh'; readonly record: SessionRecord; readonly scopesMissing: readonly string[] }
  | { readonly kind: 'repeated'; readonly record: SessionRecord }
  | { readonly kind: 'used' }
  | { readonly kind: 'codeRejected' | 'signedOut' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'denied'; readonly denial: Denial }

export type CodeExchanges = ReturnType<typeof createCodeExchanges>

/**
 * The provider exchanged the code, but was too busy for a later request of the same login. The code cannot be used again, so the
 * user must start a new login.
 */
export class LoginInterruptedError extends Error {
  override readonly name = 'LoginInterruptedError'
  declare readonly cause: ProviderError

  constructor(cause: ProviderError) {
    super(`the code was exchanged, but the login could not be completed: ${cause.message}`, { cause })
  }
}

// These characters contain 132 random bits. The id is part of the session cookie, so it should be short.
const ID_LENGTH = 22
// If the provider asks for a wait of more than 10 seconds, the login fails, because a user would not wait so long.
const MAX_BUSY_WAIT_SECONDS = 10
// These values are stored in Redis as the reason why a login has ended. Replicas of other versions read them, so do not change
// them.
const REJECTED = 'refused'
const FAILED = 'failed'

// RFC 6749 section 5.2. GitHub has a code of its own.
const CODE_REJECTIONS: ReadonlySet<string> = new Set(['invalid_grant', 'bad_verification_code'])

/** @example const exchange = await createCodeExchanges(dependencies).exchange(transaction, code) */
export function createCodeExchanges(dependencies: CodeExchangeDependencies) {
  const { mode, idp, store, clock, timeoutSeconds, access, userSessions, sessionStore } = dependencies
  const running = new Map<string, Promise<CodeExchange>>()
  const watchInternalToken = createInternalTokenWatch(dependencies)

  /**
   * Waits for the lease of the login (the right of one process to exchange its code) and then exchanges the code, unless the
   * login has already ended.
   */
  async function exchangeOnce(session: SessionKey, transaction: LoginTransaction, code: string): Promise<CodeExchange> {
    // Look for the result of an earlier exchange first. It must be found even if the provider has asked for a pause.
    const found = await store.find(session)
    if (found.kind === 'over') return endedLogin(found.why)
    const known = store.newest(session.id)
    if (known) return { kind: 'repeated', record: known }
    const request = { session, rev: 0, queue: 'code exchange', isUrgent: true, mayWait: patience(clock) } as const
    const acquired = await acquireLease(dependencies, request)
    switch (acquired.kind) {
      case 'granted':
        return exchangeUnderLease(session, acquired.lease, transaction, code)
      case 'newer':
        return { kind: 'repeated', record: acquired.record as SessionRecord }
      case 'over':
        return endedLogin(acquired.why)
      case 'paused':
        throw pausedError(acquired.ms)
      case 'busy':
        return { kind: 'pending' }
    }
  }

  async function exchangeUnderLease(
    session: SessionKey,
    lease: GrantedLease,
    { codeVerifier, nonce }: LoginTransaction,
    code: string
  ): Promise<CodeExchange> {
    let exchanged: ExchangedCode
    try {
      exchanged = await lease.send(timeoutMs => mode.exchangeCode({ code, codeVerifier, nonce, timeoutMs }))
    } catch (error) {
      pauseIfBusy(store, error)
      // If the code was rejected, end the login, so that its state cannot be used again. Otherwise an attacker could try many
      // codes with one state.
      const isRejected = error instanceof OAuthError && CODE_REJECTIONS.has(error.error)
      const failure = { kind: 'failure', pauseMs: 0, isAmbiguous: false } as const
      await lease.commit(isRejected ? { kind: 'over', why: REJECTED } : failure)
      if (isRejected) return { kind: 'codeRejected' }
      throw throttledErrorOf(error) ?? error
    }
    let { state } = exchanged
    let record: SessionRecord
    try {
      let secondClaims: TokenStep['claims']
      if (state.kind === 'half-refreshed') {
        const half = state
        const internalToken = half.identity && half.fields.internal_token
        const second = await watchInternalToken(internalToken, () => sendSecondRequest(lease, half))
        state = second.state
        secondClaims = second.claims
      }
      const { access_token } = mode.tokens(state.fields, store.now()).internal
      const denial = await denialOfLogin(exchanged.claims, secondClaims, access_token)
      if (denial) {
        revokeInBackground(idp, state.fields.refresh_token)
        await lease.commit({ kind: 'over', why: endReasonOf(denial) })
        return { kind: 'denied', denial }
      }
      const now = store.now()
      const listedAt = userSessions && state.identity ? { listedAt: now } : {}
      const isAllowed = exchanged.claims && access?.judge(exchanged.claims) === 'allowed'
      const allowed = isAllowed && { isAllowedByIdToken: true as const }
      record = { ...state, ...session, rev: 1, loggedInAt: now, issuedAt: now, ...listedAt, ...allowed }
      if (isKeptInRedis(record)) requireStorable(record)
    } catch (error) {
      // This login has failed for good, so it must not leave a valid refresh token behind.
      revokeInBackground(idp, rescuedRefreshToken(error) ?? state.fields.refresh_token)
      await lease.commit({ kind: 'over', why: FAILED })
      throw interruptionOf(error)
    }
    const committed = await lease.commit({ kind: 'tokens', record, pauseMs: 0 })
    if (committed?.kind === 'newer') return { kind: 'repeated', record: committed.record as SessionRecord }
    if (committed?.kind === 'over') {
      revokeInBackground(idp, record.fields.refresh_token)
      return { kind: 'used' }
    }
    if (userSessions && !(await userSessions.join(record))) {
      revokeInBackground(idp, record.fields.refresh_token)
      await store.logOut(record)
      return { kind: 'signedOut' }
    }
    userSessions?.addNames(record.identity, exchanged.claims ?? {})
    return { kind: 'fresh', record, scopesMissing: exchanged.scopesMissing }
  }

  /** Checks both token responses of a login. The ID token of the second one may have fewer claims (`refresh/access-check.ts`). */
  async function denialOfLogin(
    claims: CheckedClaims | undefined,
    secondClaims: CheckedClaims | undefined,
    accessToken: string
  ): Promise<Denial | undefined> {
    const denial = await access?.decide({ claims, accessToken, mayRefuse: true })
    if (denial || !access || !secondClaims) return denial
    const judgement = access.judge(secondClaims)
    return needsCheck({ judgement, isSecond: true })
      ? access.decide({ claims: secondClaims, accessToken, mayRefuse: true })
      : undefined
  }

  /**
   * Sends the second token request of a login in dual mode. If the provider is busy and its `Retry-After` (RFC 9110 section
   * 10.2.3) is at most 10 seconds, this function waits and sends the request once more.
   */
  async function sendSecondRequest(lease: GrantedLease, state: TokenState): Promise<TokenStep> {
    try {
      return await send()
    } catch (error) {
      const seconds = throttledErrorOf(error)?.retryAfterSeconds
      if (seconds === undefined || seconds > MAX_BUSY_WAIT_SECONDS) throw error
      await wait(clock, seconds * 1000)
      return send()
    }

    async function send(): Promise<TokenStep> {
      const leave = await idp.enterTokenQueue('refresh', { isUrgent: true })
      try {
        const pausedMs = store.pausedMs(true)
        if (pausedMs > 0) throw pausedError(pausedMs)
        return await mode.nextRequest(state, Math.max(1000, lease.leftMs()))
      } catch (error) {
        pauseIfBusy(store, error)
        throw error
      } finally {
        leave()
      }
    }
  }

  return {
    /**
     * Exchanges the code of a login, or returns the result of an earlier exchange.
     * @throws OAuthError, ProviderError or LoginInterruptedError if the exchange fails
     * @throws StoreUnavailableError
     */
    async exchange(transaction: LoginTransaction, code: string): Promise<CodeExchange> {
      const id = transaction.id.slice(0, ID_LENGTH)
      const session = { id, ...(sessionStore === 'redis' && { key: transaction.sessionKey }) }
      const run = running.get(id) ?? exchangeOnce(session, transaction, code).finally(() => running.delete(id))
      running.set(id, run)
      return (await withinOrUndefined(timeoutSeconds * 1000, run, clock)) ?? { kind: 'pending' }
    },
    /** Resolves when no exchange is in progress. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.allSettled(running.values())
    }
  }
}

/** Returns the result of a login that ended during an earlier request. */
function endedLogin(why: string): CodeExchange {
  if (why === REJECTED) return { kind: 'codeRejected' }
  const denial = denialOf(why)
  return denial ? { kind: 'denied', denial } : { kind: 'used' }
}

/**
 * Translates the error of a request that failed after the code was exchanged. The code cannot be used again, so the user must
 * start a new login.
 */
function interruptionOf(error: unknown): unknown {
  const throttled = throttledErrorOf(error)
  if (throttled) return new LoginInterruptedError(throttled)
  if (!(error instanceof OAuthError) || error.endpoint !== 'token') return error
  // The provider accepted the code but rejected the public scopes, so the configuration is wrong, not the code.
  const { error: code, status } = error
  return new ProviderError('token', 'unusable', `it rejected the public scopes (${code})`, { status })
}

/**
 * If the provider is busy, returns an error with the time after which the same request may succeed. Returns undefined for any
 * other error. A 503 of the user info endpoint always counts as busy. A 503 from the token endpoint without `Retry-After` does
 * not count as busy: the endpoint may already have used the code or the refresh token, so the request must not be repeated.
 */
function throttledErrorOf(error: unknown): ProviderError | undefined {
  if (!(error instanceof ProviderError)) return undefined
  if (error.isThrottled) return error
  if (error.endpoint !== 'userinfo' || error.status !== 503) return undefined
  return new ProviderError(error.endpoint, error.problem, 'it responded with 503', {
    status: 503,
    durationMs: error.durationMs,
    retryAfterSeconds: DEFAULT_RETRY_SECONDS
  })
}
