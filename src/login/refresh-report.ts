/** Writes the log lines and the metrics of refreshes. Neither contains a token. */
import type { Logger } from 'pino'
import type { Metrics } from '../base/metrics.js'
import { sessionHash } from '../cookie/record.js'
import type { Problem } from '../sessions/index.js'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/**
 * The outcome of a request that needed a refresh:
 * - `succeeded`: the request has refreshed all tokens of the session
 * - `coalesced`: the request waited for the refresh of another request
 * - `already_refreshed`: no token request was needed, because the store already had newer tokens
 * - `partial`: only some tokens are new, so a later request continues the refresh
 * - `rejected`: the session has ended
 * - `failed`: the tokens of the session have not changed
 */
export type RefreshOutcome = 'succeeded' | 'coalesced' | 'already_refreshed' | 'partial' | 'rejected' | 'failed'

export interface RefreshResult {
  readonly outcome: RefreshOutcome
  readonly reason?: Problem | undefined
  readonly durationMs: number
  /** The number of token requests that were sent. */
  readonly calls: number
  readonly expiresAt?: number | undefined
  /** The number of requests that waited for this result. Undefined for a request that waited for the refresh of another one. */
  readonly requests?: number
}

interface RefreshReportOptions {
  readonly mode: string
  readonly metrics: Pick<Metrics, 'refreshWaited'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export function createRefreshReport({ mode, metrics, now }: RefreshReportOptions) {
  return {
    ended(log: Log, sessionId: string, result: RefreshResult): void {
      const { outcome, reason, durationMs, calls, expiresAt, requests } = result
      if (calls === 0) metrics.refreshWaited(durationMs / 1000)
      // A page may send fifty requests at the same time, of which one starts the refresh. Its line counts the others, so theirs
      // would only repeat it.
      const level = requests === undefined || outcome === 'already_refreshed' ? 'debug' : 'info'
      log[level](
        {
          event: 'refresh',
          mode,
          outcome,
          ...(reason && { reason }),
          duration_ms: Math.round(durationMs),
          provider_calls: calls,
          ...(requests !== undefined && { requests }),
          ...(expiresAt !== undefined && { expires_in: Math.round((expiresAt - now()) / 1000) }),
          session: sessionHash(sessionId)
        },
        reason ? `session refresh not possible now: ${MESSAGES[reason]}` : 'session refresh'
      )
    }
  }
}

const MESSAGES: Readonly<Record<Problem, string>> = {
  pending: 'another refresh of this session has not ended, or its result is not stored yet',
  store: 'Redis is unavailable',
  unreadable: 'the stored session cannot be read',
  paused: 'the identity provider asked for a pause',
  provider: 'the identity provider did not refresh the session',
  refused: 'the identity provider refused the refresh token, but the fault may be temporary'
}
