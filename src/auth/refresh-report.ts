/** Writes the log line and the metric of a refresh. Neither contains a token. */
import { createHash } from 'node:crypto'
import type { CoordinationError } from '../coordination/coordination.js'
import type { Metrics } from '../metrics/metrics.js'
import type { KeptRefresh } from './kept-refresh.js'
import type { Log } from './log.js'

export interface EndedRefresh {
  /**
   * The source of the result: this request ran the refresh (`ran`), joined a refresh in progress (`joined`), or got the
   * result of an earlier refresh (`kept`).
   */
  readonly how: 'ran' | 'joined' | 'kept'
  readonly result: KeptRefresh
  readonly durationMs: number
  /** The number of token requests that this process sent for this refresh. */
  readonly calls: number
}

export interface RefreshReport {
  ended(log: Log, sessionId: string, refresh: EndedRefresh): void
  /** Reports a request that needed a refresh and got no result. */
  unavailable(log: Log, sessionId: string, error: CoordinationError): void
}

export interface RefreshReportParts {
  readonly mode: string
  readonly metrics: Pick<Metrics, 'refreshEnded'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export function createRefreshReport({ mode, metrics, now }: RefreshReportParts): RefreshReport {
  return {
    ended(log, sessionId, { how, result, durationMs, calls }) {
      const outcome = outcomeOf(how, result)
      const expiresAt = result.outcome === 'refreshed' ? result.record.fields.expires_at : undefined
      metrics.refreshEnded(outcome)
      log.info(
        {
          event: 'refresh',
          mode,
          outcome,
          how,
          duration_ms: Math.round(durationMs),
          provider_calls: calls,
          ...(expiresAt !== undefined && { lifetime_seconds: Math.round((expiresAt - now()) / 1000) }),
          session: hashOf(sessionId)
        },
        'session refresh'
      )
    },
    unavailable(log, sessionId, { problem, message }) {
      metrics.refreshEnded('failed')
      const fields = { event: 'refresh', mode, outcome: 'failed', reason: problem, session: hashOf(sessionId) }
      log.info(fields, `session refresh not possible now: ${message}`)
    }
  }
}

function outcomeOf(how: EndedRefresh['how'], { outcome }: KeptRefresh): string {
  if (outcome !== 'refreshed' || how === 'ran') return outcome
  return how === 'joined' ? 'coalesced' : 'kept'
}

function hashOf(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('base64url').slice(0, 8)
}
