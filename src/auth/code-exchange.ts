/** Exchanges the authorization code of a login, once however often the callback is requested. */
import { randomBytes } from 'node:crypto'
import type { Coordination, Run, Settled } from '../coordination/coordination.js'
import { OAuthError } from '../idp/errors.js'
import type { LoginTransaction } from '../login/transaction.js'
import type { Mode } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import { isLoggedOut } from './logout-marks.js'
import { pausedError, pauseIfBusy } from './pause.js'

export interface CodeExchangeParts {
  readonly mode: Mode
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly keepSeconds: number
}

/**
 * - `fresh`: this call, or the one it waited for, exchanged the code
 * - `repeated`: the code was exchanged before, and the answer may have been lost
 * - `used`: the code was exchanged before, and there is no result to give out any more
 * - `refused`: the identity provider refused the code
 */
export type CodeExchange =
  | { readonly kind: 'fresh' | 'repeated'; readonly record: SessionRecord }
  | { readonly kind: 'used' }
  | { readonly kind: 'refused' }

export interface CodeExchanges {
  /** @throws OAuthError, UpstreamError or LoginInterruptedError from the exchange; CoordinationError */
  exchange(transaction: LoginTransaction, code: string): Promise<CodeExchange>
}

// 132 random bits. The key is stored in every cookie, so it should be short.
const KEY_ID_LENGTH = 22

type Kept = { readonly record: SessionRecord } | { readonly outcome: 'used' | 'refused' }

export function createCodeExchanges({ mode, coordination, now, keepSeconds }: CodeExchangeParts): CodeExchanges {
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
      const login = await mode.redeem({ code, codeVerifier, nonce, timeoutMs: run.remainingMs() })
      // The kept result goes when the browser has its cookie. The mark must outlive the state.
      await coordination.mark(key, leftMs)
      const id = randomBytes(16).toString('base64url')
      const record = { id, loggedInAt: now(), issuedAt: now(), ...login, supersedes: key }
      return { value: { record }, hasTokens: true, keepMs: Math.max(keepSeconds * 1000, leftMs) }
    } catch (error) {
      pauseIfBusy(coordination, error)
      // One refusal decides for this state. Otherwise invented codes could be tried with it again and again.
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
      if (!('record' in value)) return value.outcome === 'used' ? { kind: 'used' } : { kind: 'refused' }
      if (await isLoggedOut(coordination, value.record.id)) return { kind: 'used' }
      return { kind: how === 'kept' ? 'repeated' : 'fresh', record: value.record }
    }
  }
}
