/**
 * Exchanges the authorization code of a login for tokens. A code can be used only once, so all requests of the same
 * callback share one successful exchange.
 */
import { randomBytes } from 'node:crypto'
import type { Coordination, Run, Settled } from '../coordination/coordination.js'
import type { IdentityProvider, UserInfo } from '../idp/client.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { LoginTransaction } from '../login/transaction.js'
import { abandon } from '../modes/grants.js'
import { type ExchangedCode, LoginInterruptedError, type Mode } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import type { AccessDecision, AccessRule } from './access.js'
import { isLoggedOut } from './logout-marks.js'
import { pausedError, pauseIfBusy } from './provider-busy.js'

export interface CodeExchangeParts {
  readonly mode: Mode
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly keepSeconds: number
  /** Decides which accounts may sign in. If undefined, all accounts may. */
  readonly access?: {
    readonly rule: AccessRule
    readonly idp: Pick<IdentityProvider, 'metadata' | 'userInfo' | 'revokeRefreshToken'>
  }
}

/**
 * - `fresh`: this call exchanged the code, or joined another call that exchanged it
 * - `repeated`: an earlier call exchanged the code, but the browser may not have received its response
 * - `used`: an earlier call exchanged the code, and its result has expired or its session was logged out
 * - `refused`: the identity provider refused the code
 * - `denied`: the account may not sign in here; its refresh token is revoked
 */
export type CodeExchange =
  | { readonly kind: 'fresh' | 'repeated'; readonly record: SessionRecord }
  | { readonly kind: 'used' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'denied'; readonly reason: Denial }

export type Denial = Exclude<AccessDecision, 'allowed'>

export interface CodeExchanges {
  /**
   * @throws OAuthError, UpstreamError or LoginInterruptedError if the exchange fails
   * @throws CoordinationError if no result is available now
   */
  exchange(transaction: LoginTransaction, code: string): Promise<CodeExchange>
}

// These characters hold 132 random bits. The key is part of the session cookie, so it should be short.
const KEY_ID_LENGTH = 22

// The delay for a provider that answers 503 without `Retry-After`.
const DEFAULT_RETRY_SECONDS = 5

type Kept =
  | { readonly record: SessionRecord }
  | { readonly outcome: 'used' | 'refused' }
  | { readonly outcome: 'denied'; readonly reason: Denial }

export function createCodeExchanges(parts: CodeExchangeParts): CodeExchanges {
  const { mode, coordination, now, keepSeconds, access } = parts

  /**
   * Checks whether the account may sign in. Revokes the refresh token if the account may not, or if the check fails.
   * @throws OAuthError, UpstreamError or LoginInterruptedError if the claims of the account cannot be read
   */
  async function decideAccess({ fields, claims }: ExchangedCode): Promise<AccessDecision> {
    if (!access) return 'allowed'
    const { rule, idp } = access

    async function readClaims(): Promise<UserInfo> {
      const { userinfoEndpoint } = await idp.metadata()
      if (userinfoEndpoint !== undefined) {
        return idp.userInfo(mode.tokens(fields, now()).internal.access_token, claims?.sub)
      }
      if (claims) return claims
      const detail =
        'the provider has no user info endpoint, and the login requested no ID token; add openid and email to the scopes'
      throw new UpstreamError('userinfo', 'unusable', detail)
    }

    try {
      const decision = rule(await readClaims())
      if (decision !== 'allowed') abandon(idp, fields.refresh_token)
      return decision
    } catch (error) {
      abandon(idp, fields.refresh_token)
      const busy = busyErrorOf(error)
      throw busy ? new LoginInterruptedError(busy) : error
    }
  }

  async function exchangeNow(
    key: string,
    { codeVerifier, nonce, expiresAt }: LoginTransaction,
    code: string,
    run: Run<Kept>
  ): Promise<Settled<Kept>> {
    const stateRemainingMs = Math.max(1, expiresAt - now())
    if (await coordination.isMarked(key)) return { value: { outcome: 'used' }, keepMs: stateRemainingMs }
    const pausedMs = coordination.pausedMs({ isUrgent: true })
    if (pausedMs > 0) throw pausedError(pausedMs)
    try {
      const exchanged = await mode.exchangeCode({ code, codeVerifier, nonce, timeoutMs: run.remainingMs() })
      // The result is removed soon after the browser has sent its session cookie. The mark stays until the state
      // expires, so that no second code can be exchanged with this state.
      await coordination.mark(key, stateRemainingMs)
      const decision = await decideAccess(exchanged)
      if (decision !== 'allowed') return { value: { outcome: 'denied', reason: decision }, keepMs: stateRemainingMs }
      const id = randomBytes(16).toString('base64url')
      const { fields, identity } = exchanged
      const record = { id, loggedInAt: now(), issuedAt: now(), fields, identity, supersedes: key }
      return { value: { record }, hasTokens: true, keepMs: Math.max(keepSeconds * 1000, stateRemainingMs) }
    } catch (error) {
      pauseIfBusy(coordination, error)
      // After a refused code, the state cannot be used again. Otherwise an attacker could try many codes with one
      // state.
      if (error instanceof OAuthError && error.error === 'invalid_grant') {
        return { value: { outcome: 'refused' }, keepMs: stateRemainingMs }
      }
      throw error
    }
  }

  return {
    async exchange(transaction, code) {
      const key = `login:${transaction.id.slice(0, KEY_ID_LENGTH)}`
      const { value, how } = await coordination.once<Kept>(key, run => exchangeNow(key, transaction, code, run))
      if (!('record' in value)) {
        return value.outcome === 'denied' ? { kind: 'denied', reason: value.reason } : { kind: value.outcome }
      }
      if (await isLoggedOut(coordination, value.record.id)) return { kind: 'used' }
      return { kind: how === 'kept' ? 'repeated' : 'fresh', record: value.record }
    }
  }
}

/**
 * Returns an error with the time after which a new login may succeed, if the provider is busy or answered 503 without
 * `Retry-After`. Returns undefined for any other error.
 */
function busyErrorOf(error: unknown): UpstreamError | undefined {
  if (!(error instanceof UpstreamError)) return undefined
  if (error.isBusy) return error
  if (error.status !== 503) return undefined
  return new UpstreamError(error.endpoint, error.problem, 'it answered 503', {
    status: 503,
    durationMs: error.durationMs,
    retryAfterSeconds: DEFAULT_RETRY_SECONDS
  })
}
