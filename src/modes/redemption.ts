/** The code exchange of one login, done once however often its callback is called. */
import { randomBytes } from 'node:crypto'
import type { Coordination } from '../coordination/coordination.js'
import type { LoginTransaction } from '../login/transaction.js'
import type { SessionRecord } from '../session/record.js'
import { hasEnded } from './logouts.js'
import type { Mode } from './mode.js'

export interface RedemptionParts {
  readonly mode: Mode
  readonly coordination: Coordination
  readonly now: () => number
  readonly keepSeconds: number
}

/**
 * - `fresh`: this call, or the one it waited for, exchanged the code
 * - `repeated`: it was exchanged before and the answer may have been lost
 * - `spent`: it was exchanged before and there is nothing left to give
 */
export type Redemption =
  | { readonly kind: 'fresh' | 'repeated'; readonly record: SessionRecord }
  | { readonly kind: 'spent' }

export interface Redemptions {
  /** Throws OAuthError or UpstreamError when the provider does not give tokens for the code. */
  redeem(transaction: LoginTransaction, code: string): Promise<Redemption>
}

export function createRedemptions({ mode, coordination, now, keepSeconds }: RedemptionParts): Redemptions {
  return {
    async redeem(transaction, code) {
      const { id, codeVerifier, nonce, expiresAt } = transaction
      const key = `login:${id}`
      const { value: record, how } = await coordination.once<SessionRecord | null>(key, async () => {
        if (await coordination.isMarked(key)) return { value: null, keepMs: 0 }
        const fields = await mode.redeem({ code, codeVerifier, nonce })
        // The kept tokens go after a while; that the login was used must be known for as long as its state is good.
        await coordination.mark(key, expiresAt - now())
        const record = { id: randomBytes(16).toString('base64url'), loggedInAt: now(), issuedAt: now(), fields }
        return { value: record, isPrecious: true, keepMs: keepSeconds * 1000 }
      })
      if (!record || (await hasEnded(coordination, record.id))) return { kind: 'spent' }
      return { kind: how === 'kept' ? 'repeated' : 'fresh', record }
    }
  }
}
