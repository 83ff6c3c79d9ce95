/** Exchanges the authorization code of a login. The code is sent once, even if the callback is requested several times. */
import { randomBytes } from 'node:crypto'
import type { Coordination, Run, Settled } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { LoginTransaction } from '../login/transaction.js'
import { abandon } from '../modes/grants.js'
import { LoginInterruptedError, type Mode } from '../modes/mode.js'
import type { SessionFields, SessionRecord } from '../session/record.js'
import type { AccessDecision, AccessRule } from './access.js'
import { isLoggedOut } from './logout-marks.js'
import { pausedError, pauseIfBusy } from './provider-busy.js'

export interface CodeExchangeParts {
  readonly mode: Mode
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly keepSeconds: number
  /** Decides who may sign in. If undefined, everybody whom the identity provider signs in may. */
  readonly access?: {
    readonly rule: AccessRule
    readonly idp: Pick<IdentityProvider, 'userInfo' | 'revokeRefreshToken'>
  }
}

/**
 * - `fresh`: this call exchanged the code, or waited for another call that did
 * - `repeated`: the code was exchanged before; the browser may not have received that response
 * - `used`: the code was exchanged before, and its result has expired or its session was logged out
 * - `refused`: the identity provider refused the code
 * - `denied`: the account may not sign in here; its grant has been revoked
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
   * @throws CoordinationError if there is no result now
   */
  exchange(transaction: LoginTransaction, code: string): Promise<CodeExchange>
}

// 132 random bits. The key is stored in every cookie, so it should be short.
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
   * Revokes the grant if the account may not sign in, or if that cannot be decided.
   * @throws OAuthError, UpstreamError or LoginInterruptedError if the user info cannot be read
   */
  async function decideAccess(fields: SessionFields): Promise<AccessDecision> {
    if (!access) return 'allowed'
    const { rule, idp } = access
    try {
      const decision = rule(await idp.userInfo(mode.tokens(fields, now()).internal.access_token))
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
    const leftMs = Math.max(1, expiresAt - now())
    if (await coordination.isMarked(key)) return { value: { outcome: 'used' }, keepMs: leftMs }
    const pausedMs = coordination.pausedMs({ isUrgent: true })
    if (pausedMs > 0) throw pausedError(pausedMs)
    try {
      const login = await mode.exchangeCode({ code, codeVerifier, nonce, timeoutMs: run.remainingMs() })
      // The kept result expires early, once the browser has its cookie. The mark must outlive the state.
      await coordination.mark(key, leftMs)
      const decision = await decideAccess(login.fields)
      if (decision !== 'allowed') return { value: { outcome: 'denied', reason: decision }, keepMs: leftMs }
      const id = randomBytes(16).toString('base64url')
      const record = { id, loggedInAt: now(), issuedAt: now(), ...login, supersedes: key }
      return { value: { record }, hasTokens: true, keepMs: Math.max(keepSeconds * 1000, leftMs) }
    } catch (error) {
      pauseIfBusy(coordination, error)
      // After one refusal no other code is accepted with this state. Otherwise an attacker could try many codes with it.
      if (error instanceof OAuthError && error.error === 'invalid_grant') {
        return { value: { outcome: 'refused' }, keepMs: leftMs }
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
 * Returns an error that asks the browser to try again later, if the provider is busy or answers 503 without `Retry-After`.
 * Returns undefined for any other error.
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
