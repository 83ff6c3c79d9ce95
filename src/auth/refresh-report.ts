/** Writes the log line and the metric of a refresh. Neither contains a token. */
import { createHash } from 'node:crypto'
import type { CoordinationError } from '../coordination/coordination.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Log } from './log.js'

export interface RefreshOutcome {
  readonly outcome: 'refreshed' | 'coalesced' | 'kept' | 'partial' | 'rejected' | 'failed'
  readonly how: 'ran' | 'joined' | 'kept'
  readonly durationMs: number
  /** The number of token requests that this process sent for this refresh. */
  readonly calls: number
  /** The lifetime of the new access token, in milliseconds. */
  readonly lifetimeMs?: number | undefined
}

export interface RefreshReport {
  ended(log: Log, sessionId: string, outcome: RefreshOutcome): void
  /** A request that needed a refresh got no result. */
  unavailable(log: Log, sessionId: string, error: CoordinationError): void
}

export function createRefreshReport(mode: string, metrics: Pick<Metrics, 'refreshEnded'>): RefreshReport {
  return {
    ended(log, sessionId, { outcome, how, durationMs, calls, lifetimeMs }) {
      metrics.refreshEnded(outcome)
      log.info(
        {
          event: 'refresh',
          mode,
          outcome,
          how,
          duration_ms: Math.round(durationMs),
          provider_calls: calls,
          ...(lifetimeMs !== undefined && { lifetime_seconds: Math.round(lifetimeMs / 1000) }),
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

function hashOf(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('base64url').slice(0, 8)
}
