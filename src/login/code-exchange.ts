/**
 * Exchanges the authorization code of a login for tokens. A code can be used only once, so all requests of the same
 * callback share one exchange. A login is the step of a session from revision 0 to 1, and the session id is the id of the
 * login.
 */

import type { Config } from '../config/settings.js'
import { type Access, type Denial, denialOf, endReasonOf } from '../modes/access.js'
import { revokeInBackground } from '../modes/grants.js'
import type { ExchangedCode, Mode, TokenState } from '../modes/mode.js'
import type { IdentityProvider } from '../provider/client.js'
import { OAuthError, ProviderError, rescuedRefreshToken } from '../provider/errors.js'
import { DEFAULT_RETRY_SECONDS, pausedError, pauseIfBusy } from '../refresh/busy.js'
import { NotSentError, PATIENCE_MS, requestLock, sendUnderLock } from '../refresh/token-request.js'
import { isKeptInRedis, type SessionRecord } from '../session/record.js'
import { requireStorable } from '../session/session-cookie.js'
import type { Lock, SessionStore } from '../store/session-store.js'
import { StoreUnavailableError } from '../store/unavailable.js'
import { type Clock, wait } from '../support/clock.js'
import { withinOrUndefined } from '../support/within.js'
import type { LoginTransaction } from './transaction.js'

export interface CodeExchangeParts {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue' | 'revokeRefreshToken'>
  readonly store: SessionStore
  readonly clock: Clock
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  /** Decides which accounts may sign in. If undefined, all accounts may. */
  readonly access: Access | undefined
  /** The setting `session.store`. */
  readonly sessionStore: Config['session']['store']
}

/**
 * - `fresh`: this call exchanged the code, or joined another call that exchanged it
 * - `repeated`: an earlier call exchanged the code, but the browser may not have received its response
 * - `used`: an earlier call exchanged the code, and a browser has its session, or the session has ended
 * - `rejected`: the identity provider rejected the code
 * - `denied`: the account may not sign in here; its refresh token is revoked
 */
export type CodeExchange =
  | { readonly kind: 'fresh' | 'repeated'; readonly record: SessionRecord }
  | { readonly kind: 'used' }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'denied'; readonly denial: Denial }

export interface CodeExchanges {
  /**
   * @throws OAuthError, ProviderError or LoginInterruptedError if the exchange fails
   * @throws StoreUnavailableError if no result is available now
   * @throws StoredDataError if the stored data cannot be read
   */
  exchange(transaction: LoginTransaction, code: string): Promise<CodeExchange>
  /** Resolves when no exchange is in progress. */
  ended(): Promise<void>
}

/**
 * The provider exchanged the code, but it was too busy for a later request of the same login. The code cannot be used
 * again, so the person must start a new login.
 */
export class LoginInterruptedError extends Error {
  override readonly cause: ProviderError

  constructor(cause: ProviderError) {
    super(`the code was exchanged, but the login could not be completed: ${cause.message}`)
    this.name = 'LoginInterruptedError'
    this.cause = cause
  }
}

// These characters hold 132 random bits. The id is part of the session cookie, so it should be short.
const ID_LENGTH = 22
// The person who signs in would not wait for longer.
const MAX_BUSY_WAIT_SECONDS = 10
// The reasons that the store keeps for a login that has ended. Other replicas may have stored them before an update.
const REJECTED = 'refused'
const FAILED = 'failed'

/** @example const exchange = await createCodeExchanges(parts).exchange(transaction, code) */
export function createCodeExchanges(parts: CodeExchangeParts): CodeExchanges {
  const { mode, idp, store, clock, timeoutSeconds, access, sessionStore } = parts
  const running = new Map<string, Promise<CodeExchange>>()

  function keyOf({ sessionKey }: LoginTransaction): Pick<SessionRecord, 'key'> {
    return sessionStore === 'redis' ? { key: sessionKey } : {}
  }

  /** Waits for the lock of the login and then exchanges the code, unless the login has ended before. */
  async function exchangeOnce(id: string, transaction: LoginTransaction, code: string): Promise<CodeExchange> {
    const answer = await requestLock(parts, { id, rev: 0, ...keyOf(transaction) }, PATIENCE_MS)
    switch (answer.kind) {
      case 'mine':
        return exchangeUnderLock(answer.lock, transaction, code)
      case 'newer':
        return { kind: 'repeated', record: answer.record }
      case 'ended':
        return endedLogin(answer.reason)
      case 'pausing':
        throw pausedError(answer.pauseMs)
      case 'away':
        throw new StoreUnavailableError('store')
      case 'wait':
        throw new StoreUnavailableError('pending')
      default:
        return { kind: 'used' }
    }
  }

  async function exchangeUnderLock(lock: Lock, transaction: LoginTransaction, code: string): Promise<CodeExchange> {
    const { id } = lock
    const { codeVerifier, nonce } = transaction
    let exchanged: ExchangedCode
    try {
      exchanged = await sendUnderLock(parts, lock, 'code exchange', false, timeoutMs =>
        mode.exchangeCode({ code, codeVerifier, nonce, timeoutMs })
      )
    } catch (error) {
      pauseIfBusy(store, error)
      // After a rejected code, the state cannot be used again. Otherwise an attacker could try many codes with one state.
      const isRejected = error instanceof OAuthError && error.error === 'invalid_grant'
      const failure = { kind: 'failure', pauseMs: 0, isDoubtful: false } as const
      await store.save(lock, isRejected ? { kind: 'ended', reason: REJECTED } : failure)
      if (isRejected) return { kind: 'rejected' }
      if (error instanceof NotSentError && error.reason === 'pending') throw new StoreUnavailableError('pending')
      throw busyErrorOf(error) ?? error
    }
    let { state } = exchanged
    let record: SessionRecord
    try {
      if (!exchanged.isComplete) state = await requestPublicToken(lock, state)
      const { access_token } = mode.tokens(state.fields, clock.now()).internal
      const denial = await access?.decide(exchanged.claims, access_token)
      if (denial) {
        revokeInBackground(idp, state.fields.refresh_token)
        await store.save(lock, { kind: 'ended', reason: endReasonOf(denial) })
        return { kind: 'denied', denial }
      }
      const { fields, identity } = state
      const now = clock.now()
      record = { id, rev: 1, loggedInAt: now, issuedAt: now, fields, identity, ...keyOf(transaction) }
      if (isKeptInRedis(record)) requireStorable(record)
    } catch (error) {
      // A login that finally fails must not leave a valid refresh token behind.
      revokeInBackground(idp, rescuedRefreshToken(error) ?? state.fields.refresh_token)
      await store.save(lock, { kind: 'ended', reason: FAILED })
      throw interruptionOf(error)
    }
    const issuedAt = exchanged.claims?.iat
    const saved = await store.save(lock, { kind: 'tokens', record, keepsLock: false, pauseMs: 0, issuedAt })
    if (saved.kind === 'newer') return { kind: 'repeated', record: saved.record }
    if (saved.kind === 'out' || saved.kind === 'ended') {
      revokeInBackground(idp, record.fields.refresh_token)
      return { kind: 'used' }
    }
    return { kind: 'fresh', record }
  }

  /**
   * Sends the second token request of a login in dual mode. If the provider is busy and asks to wait for at most 10 seconds
   * (`Retry-After`, RFC 9110 section 10.2.3), sends it once more.
   */
  async function requestPublicToken(lock: Lock, state: TokenState): Promise<TokenState> {
    const send = () =>
      sendUnderLock(parts, lock, 'refresh', true, timeoutMs => mode.nextRequest(state, timeoutMs)).catch(
        (error: unknown) => {
          pauseIfBusy(store, error)
          throw error
        }
      )
    try {
      return (await send()).state
    } catch (error) {
      const seconds = busyErrorOf(error)?.retryAfterSeconds
      if (seconds === undefined || seconds > MAX_BUSY_WAIT_SECONDS) throw error
      await wait(clock, seconds * 1000)
      return (await send()).state
    }
  }

  return {
    async exchange(transaction, code) {
      const id = transaction.id.slice(0, ID_LENGTH)
      const run = running.get(id) ?? exchangeOnce(id, transaction, code).finally(() => running.delete(id))
      running.set(id, run)
      const exchange = await withinOrUndefined(timeoutSeconds * 1000, run, clock)
      if (!exchange) throw new StoreUnavailableError('pending')
      return exchange
    },
    async ended() {
      while (running.size > 0) await Promise.allSettled(running.values())
    }
  }
}

/** Returns the result of a login that has ended before. */
function endedLogin(reason: string): CodeExchange {
  if (reason === REJECTED) return { kind: 'rejected' }
  const denial = denialOf(reason)
  return denial ? { kind: 'denied', denial } : { kind: 'used' }
}

/** Returns the error of a login whose code has been used. */
function interruptionOf(error: unknown): unknown {
  const busy = busyErrorOf(error)
  if (busy) return new LoginInterruptedError(busy)
  if (!(error instanceof OAuthError) || error.endpoint !== 'token') return error
  // The provider accepted the code but not the narrower scopes.
  const { error: code, status } = error
  return new ProviderError('token', 'unusable', `it rejected the public scopes (${code})`, { status })
}

/**
 * Returns an error with the time after which the same request may succeed, if the provider is busy or asked for a pause
 * before, or if its user info endpoint answered 503 without `Retry-After`. Returns undefined for any other error. After a
 * 503 without `Retry-After`, the token endpoint may have used the code or refresh token.
 */
function busyErrorOf(error: unknown): ProviderError | undefined {
  if (error instanceof NotSentError) return pausedError(error.retryAfterSeconds * 1000)
  if (!(error instanceof ProviderError)) return undefined
  if (error.isBusy) return error
  if (error.endpoint !== 'userinfo' || error.status !== 503) return undefined
  return new ProviderError(error.endpoint, error.problem, 'it answered 503', {
    status: 503,
    durationMs: error.durationMs,
    retryAfterSeconds: DEFAULT_RETRY_SECONDS
  })
}
