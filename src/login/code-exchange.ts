/**
 * Exchanges the authorization code of a login for tokens. A code can be used only once, so all requests of the same callback
 * share one exchange. A login creates revision 1 of a session. The session id is derived from the login, so a repeated callback
 * finds the same session. The whole login is stored once, as a complete and allowed session or as an end: a repeated callback that
 * found a session before the access check would sign in a user who is not allowed.
 */
import type { Logger } from 'pino'
import { type Clock, wait, withinOrUndefined } from '../base/clock.js'
import { failureReasonOf } from '../base/failure-reasons.js'
import type { Config } from '../config/settings.js'
import { requireStorable } from '../cookie/session-cookie.js'
import { type Identity, isKeptInRedis, type SessionRecord } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { OAuthError, ProviderError, unusableTokens } from '../provider/provider-error.js'
import type { Current, Denial, End, LeaseRequest, Result, Revision, Sessions, UserSessions } from '../sessions/index.js'
import type { Access, CheckedClaims } from './access.js'
import { needsCheck } from './access-check.js'
import type { Evidence } from './evidence.js'
import { DEFAULT_RETRY_SECONDS, pausedError, pauseIfThrottled } from './failure.js'
import { createInternalTokenWatch } from './internal-token-watch.js'
import type { ExchangedCode, Mode, TokenStep } from './mode.js'
import { revokeInBackground, type TokenState } from './token-requests.js'
import type { LoginTransaction } from './transaction.js'

interface CodeExchangeDependencies {
  readonly mode: Mode
  readonly sessions: Pick<Sessions, 'now' | 'current' | 'underLease' | 'end' | 'pause' | 'pausedMs'>
  readonly clock: Clock
  readonly idp: Pick<IdentityProvider, 'inTokenQueue' | 'revokeRefreshToken' | 'metadata' | 'userInfo'>
  readonly log: Pick<Logger, 'warn'>
  readonly evidence: Pick<Evidence, 'loggedIn' | 'clientRejected'>
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  /** Decides which accounts may sign in. If undefined, all accounts may sign in. */
  readonly access: Access | undefined
  /** Undefined unless `platform.backchannelLogout` is on. */
  readonly userSessions: Pick<UserSessions, 'join' | 'joinAgain' | 'addNames'> | undefined
  /** The setting `session.store`. */
  readonly sessionStore: Config['session']['store']
}

/**
 * - `fresh`: this call exchanged the code, or waited for the call that exchanged it
 * - `repeated`: an earlier call exchanged the code, but the browser may not have received its response
 * - `used`: an earlier call exchanged the code, but the session is over
 * - `codeRejected`: the identity provider rejected the code. The first call also returns its `error`.
 * - `denied`: the account may not sign in here; its refresh token is revoked
 * - `signedOut`: the identity provider has signed the user out since the login began; the refresh token is revoked
 * - `interrupted`: the provider exchanged the code, but throttled a later request of the same login. The code cannot be used again,
 *   so the user must start a new login. Only the first call returns this
 * - `pending`: the exchange has not ended yet; a later call gets its result
 */
export type CodeExchange =
  | {
      readonly kind: 'fresh' | 'repeated'
      readonly record: SessionRecord
      /** The requested scopes that the provider has not granted. Empty if an earlier call has returned them. */
      readonly scopesMissing: readonly string[]
    }
  | { readonly kind: 'used' }
  | { readonly kind: 'codeRejected'; readonly error?: string }
  | { readonly kind: 'signedOut' }
  | { readonly kind: 'interrupted'; readonly cause: ProviderError }
  | { readonly kind: 'pending' }
  | { readonly kind: 'denied'; readonly denial: Denial }

export type CodeExchanges = ReturnType<typeof createCodeExchanges>

// These characters contain 132 random bits. The id is part of the session cookie, so it should be short.
export const ID_LENGTH = 22
// If the provider asks for a wait of more than 10 seconds, the login fails, because a user would not wait so long.
const MAX_THROTTLED_SECONDS = 10
// The timer of Node may fire a millisecond before the end of a pause on the system clock.
const EARLY_TIMER_MS = 1

// RFC 6749 section 5.2. GitHub uses another code.
const CODE_REJECTIONS: ReadonlySet<string> = new Set(['invalid_grant', 'bad_verification_code'])

/** @example const exchange = await createCodeExchanges(dependencies).exchange(transaction, code) */
export function createCodeExchanges(dependencies: CodeExchangeDependencies) {
  const { clock, timeoutSeconds, sessionStore } = dependencies
  const exchangeOnce = createExchange(dependencies)
  const running = new Map<string, Promise<CodeExchange>>()

  return {
    /**
     * Exchanges the code of a login, or returns the result of an earlier exchange.
     * @param onDenied gets the user of a login that is denied, also if the request has stopped waiting by then. Must not reject
     * @throws ProviderError if the exchange fails
     * @throws StoreUnavailableError
     */
    async exchange(transaction: LoginTransaction, code: string, onDenied: OnDenied): Promise<CodeExchange> {
      const id = transaction.id.slice(0, ID_LENGTH)
      const login = { id, rev: 0, ...(sessionStore === 'redis' && { key: transaction.sessionKey }) }
      const begin = () => exchangeOnce(login, transaction, code, onDenied).finally(() => running.delete(id))
      const run = running.get(id) ?? begin()
      running.set(id, run)
      return (await withinOrUndefined(timeoutSeconds * 1000, run, clock)) ?? { kind: 'pending' }
    },
    /** Resolves when no exchange is in progress. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.allSettled(running.values())
    }
  }
}

type OnDenied = (denial: Denial, identity: Identity | undefined) => Promise<void>

/**
 * What the token requests of a login have led to, and what is stored as its result:
 * - `completed`: the login has all tokens, and its account is allowed
 * - `denied`: the account may not sign in here
 * - `ended`: the login has ended with the result of the exchange
 * - `failed`: the login has failed for good if its code was exchanged. Otherwise the exchange can be repeated.
 */
type Attempt = { readonly result: Result } & (
  | ({ readonly kind: 'completed'; readonly record: SessionRecord } & Pick<ExchangedCode, 'claims' | 'scopesMissing'>)
  | { readonly kind: 'denied'; readonly denial: Denial; readonly identity: Identity | undefined }
  | { readonly kind: 'ended'; readonly exchange: CodeExchange }
  | { readonly kind: 'failed'; readonly error: unknown }
)

type Completed = Extract<Attempt, { readonly kind: 'completed' }>

/** Creates the function that exchanges a code, unless its login has already ended. */
function createExchange(dependencies: CodeExchangeDependencies) {
  const { mode, idp, sessions, userSessions, evidence } = dependencies
  const completeLogin = createCompletion(dependencies)

  /** Exchanges the code under the lease of the login. `attempt` is undefined if no code was sent. */
  async function exchangeCode(login: Revision, { codeVerifier, nonce }: LoginTransaction, code: string) {
    const requester = { session: login.id, user: login.id }
    const request: LeaseRequest = {
      inSlot: send => idp.inTokenQueue('code exchange', { isUrgent: true, requester }, send),
      isUrgent: true,
      mayWait: true
    }
    const sent: { attempt?: Attempt } = {}
    const ended = (attempt: Attempt): Result => {
      sent.attempt = attempt
      return attempt.result
    }
    const current = await sessions.underLease(login, request, async (_login, { leftMs }) => {
      try {
        const exchanged = await mode.exchangeCode({ code, codeVerifier, nonce, timeoutMs: leftMs() })
        evidence.loggedIn()
        return { kind: 'unfinished', finish: async () => ended(await completeLogin(login, exchanged, leftMs)) }
      } catch (error) {
        pauseIfThrottled(sessions, 'login', error)
        if (failureReasonOf(error) === 'client_rejected') evidence.clientRejected()
        if (error instanceof OAuthError && CODE_REJECTIONS.has(error.error)) {
          // End the login, so that its state cannot be used again. Otherwise an attacker could try many codes with one state.
          const result = { kind: 'over', end: { reason: 'refused' } } as const
          return ended({ kind: 'ended', exchange: { kind: 'codeRejected', error: error.error }, result })
        }
        const result = { kind: 'failure', pauseMs: 0 } as const
        return ended({ kind: 'failed', error: throttledErrorOf(error) ?? error, result })
      }
    })
    return { current, attempt: sent.attempt }
  }

  /** Adds a new session to the lists of its user. */
  async function join({ record, claims, scopesMissing }: Completed): Promise<CodeExchange> {
    if (userSessions && !(await userSessions.join(record))) {
      revokeInBackground(idp, record.fields.refresh_token)
      await sessions.end(record)
      return { kind: 'signedOut' }
    }
    userSessions?.addNames(record.identity, claims ?? {})
    return { kind: 'fresh', record, scopesMissing }
  }

  /** Returns the session of an earlier exchange. The process of that exchange may have ended before the session joined its lists. */
  function repeated(current: Exclude<Current, { readonly kind: 'over' }>): CodeExchange {
    if (!current.record || isWithheld(current)) return { kind: 'pending' }
    userSessions?.joinAgain(current.record.id)
    return { kind: 'repeated', record: current.record, scopesMissing: [] }
  }

  return async function exchangeOnce(
    login: Revision,
    transaction: LoginTransaction,
    code: string,
    onDenied: OnDenied
  ): Promise<CodeExchange> {
    // Look for the result of an earlier exchange first. It must be found even if the provider has asked for a pause.
    const found = await sessions.current(login)
    if (found.kind === 'over') return endedLogin(found.end)
    if (found.kind === 'live') return repeated(found)
    const { current, attempt } = await exchangeCode(login, transaction, code)
    switch (attempt?.kind) {
      case 'failed':
        throw attempt.error
      case 'denied':
        await onDenied(attempt.denial, attempt.identity)
        return { kind: 'denied', denial: attempt.denial }
      case 'ended':
        return attempt.exchange
      case 'completed':
        if (current.kind === 'over') {
          revokeInBackground(idp, attempt.record.fields.refresh_token)
          return { kind: 'used' }
        }
        if (current.record === attempt.record) {
          const joined = await join(attempt)
          return joined.kind === 'fresh' && isWithheld(current) ? { kind: 'pending' } : joined
        }
    }
    if (current.kind === 'over') return endedLogin(current.end)
    if (current.record) return repeated(current)
    if (current.kind === 'unavailable' && current.why !== 'pending') throw pausedError(current.retryAfterSeconds)
    return { kind: 'pending' }
  }
}

/** Creates the function that completes a login after its code was exchanged. */
function createCompletion(dependencies: CodeExchangeDependencies) {
  const { mode, idp, sessions, clock, access, userSessions } = dependencies
  const watchInternalToken = createInternalTokenWatch(dependencies)

  /** Checks both token responses of a login. The ID token of the second one may have fewer claims (`access-check.ts`). */
  async function denialOfLogin(
    claims: CheckedClaims | undefined,
    secondClaims: CheckedClaims | undefined,
    accessToken: string
  ): Promise<Denial | undefined> {
    const denial = await access?.decide({ claims, accessToken, mayRefuse: true, isLogin: true })
    if (denial || !access || !secondClaims) return denial
    const judgement = access.judge(secondClaims)
    return needsCheck({ judgement, isSecond: true })
      ? access.decide({ claims: secondClaims, accessToken, mayRefuse: true })
      : undefined
  }

  /**
   * Sends the second token request of a login in dual mode. If the provider throttles it with a `Retry-After` (RFC 9110
   * section 10.2.3) of at most 10 seconds, this function waits and sends the request once more.
   */
  async function sendSecondRequest(state: TokenState, leftMs: () => number): Promise<TokenStep> {
    try {
      return await send()
    } catch (error) {
      const seconds = throttledErrorOf(error)?.retryAfterSeconds
      if (seconds === undefined || seconds > MAX_THROTTLED_SECONDS) throw error
      await wait(clock, seconds * 1000)
      return send()
    }

    async function send(): Promise<TokenStep> {
      return idp.inTokenQueue('refresh', { isUrgent: true }, async () => {
        const pausedMs = sessions.pausedMs('login')
        // This error must not begin another pause: the provider has not asked for it.
        if (pausedMs > EARLY_TIMER_MS) throw pausedError(Math.ceil(pausedMs / 1000))
        return mode.nextRequest(state, Math.max(1000, leftMs())).catch((error: unknown) => {
          pauseIfThrottled(sessions, 'login', error)
          throw error
        })
      })
    }
  }

  function recordOf({ id, key }: Revision, state: TokenState, claims: CheckedClaims | undefined): SessionRecord {
    const now = sessions.now()
    const record = {
      ...state,
      id,
      ...(key !== undefined && { key }),
      rev: 1,
      loggedInAt: now,
      issuedAt: now,
      ...(userSessions && state.identity && { listedAt: now }),
      ...(claims && access?.judge(claims) === 'allowed' && { isAllowedByIdToken: true as const })
    }
    if (isKeptInRedis(record)) requireStorable(record)
    return record
  }

  return async function completeLogin(
    login: Revision,
    { state: first, claims, scopesMissing }: ExchangedCode,
    leftMs: () => number
  ): Promise<Attempt> {
    // The newest response. Its claims are those of the second request.
    let newest: TokenStep = { state: first }
    try {
      if (first.kind === 'half-refreshed') {
        const internalToken = first.identity && first.fields.internal_token
        newest = await watchInternalToken(internalToken, () => sendSecondRequest(first, leftMs))
      }
      const { state, claims: secondClaims } = newest
      const { access_token } = mode.tokens(state.fields, sessions.now()).internal
      const denial = await denialOfLogin(claims, secondClaims, access_token)
      if (denial) {
        revokeInBackground(idp, state.fields.refresh_token)
        return { kind: 'denied', denial, identity: state.identity, result: { kind: 'over', end: denial } }
      }
      const record = recordOf(login, state, claims)
      return { kind: 'completed', record, claims, scopesMissing, result: { kind: 'tokens', record, pauseMs: 0 } }
    } catch (error) {
      // This login has failed for good, so it must not leave a valid refresh token behind.
      revokeInBackground(idp, ProviderError.refreshTokenOf(error) ?? newest.state.fields.refresh_token)
      const result = { kind: 'over', end: { reason: 'failed' } } as const
      const cause = throttledErrorOf(error)
      if (cause) return { kind: 'ended', exchange: { kind: 'interrupted', cause }, result }
      return { kind: 'failed', error: withoutCode(error), result }
    }
  }
}

/** True if the cookie would name a revision of a session in Redis that Redis does not have yet. */
function isWithheld({ record, isUnsaved }: Exclude<Current, { readonly kind: 'over' }>): boolean {
  return isUnsaved === true && record !== undefined && isKeptInRedis(record)
}

/** Returns the result of a login that ended during an earlier request. */
function endedLogin(end: End): CodeExchange {
  if (end.reason === 'refused') return { kind: 'codeRejected' }
  return end.reason === 'denied' ? { kind: 'denied', denial: end } : { kind: 'used' }
}

/** Replaces the error with which the provider refused a request after it had exchanged the code. */
function withoutCode(error: unknown): unknown {
  if (!(error instanceof OAuthError) || error.endpoint !== 'token') return error
  // The provider accepted the code but rejected the public scopes, so the configuration is wrong, not the code.
  const { error: code, status } = error
  return unusableTokens(`it rejected the public scopes (${code})`, { status })
}

/**
 * If the provider throttles requests, returns an error with the time after which the same request may succeed. Returns undefined
 * for any other error. A 503 of the user info endpoint always counts as throttling. A 503 of the token endpoint without
 * `Retry-After` does not: the endpoint may already have used the code or the refresh token, so the request must not be repeated.
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
