/** Turns the provider's answer to a refresh into the result that the coordination store keeps. */
import { type Coordination, CoordinationError, type Settled } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { UpstreamError } from '../idp/errors.js'
import { abandon } from '../modes/grants.js'
import type { Refreshed, RefreshState } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import { type KeptRefresh, refreshKeyOf } from './kept-refresh.js'
import type { Log } from './log.js'
import { isLoggedOutHere } from './logout-marks.js'
import { pauseIfBusy } from './provider-busy.js'
import { judgeRefusal } from './refresh-verdict.js'
import { pauseSecondsAfter } from './retry-pause.js'

export interface RefreshResultParts {
  readonly idp: Pick<IdentityProvider, 'revokeRefreshToken'>
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The time in milliseconds for which a session's last result is kept for requests that were sent before it ended. */
  readonly keepMs: number
  /** The lifetime of a session cookie in milliseconds. A result that holds tokens is kept for as long. */
  readonly maxAgeMs: number
}

export interface RefreshAnswer {
  /** The session that was to be refreshed. */
  readonly before: SessionRecord
  readonly refreshed: Refreshed
  /** The time from which a refusal is final. Until then an earlier owner of the lock may deliver a better result. */
  readonly finalAt: number
  /** The earlier result for the same refresh token, if there was one. */
  readonly previous: KeptRefresh | undefined
  readonly log: Log
}

export interface RefreshResults {
  /** Returns the result of a refresh that has ended. Revokes the new refresh token if the session was logged out meanwhile. */
  resultOf(answer: RefreshAnswer): Settled<KeptRefresh>
  /** Returns the intermediate result after the first step of dual mode. */
  checkpointOf(before: SessionRecord, reached: RefreshState): Settled<KeptRefresh>
}

// The first `invalid_request` is remembered for this time. It is longer than the time until the token counts as dead.
const SUSPICION_KEPT_MS = 300_000

export function createRefreshResults(parts: RefreshResultParts): RefreshResults {
  const { idp, coordination, now, keepMs, maxAgeMs } = parts

  function successorOf(before: SessionRecord, { fields, internalExpiresAt }: RefreshState): SessionRecord {
    const { internalExpiresAt: _before, ...rest } = before
    const firstStep = internalExpiresAt === undefined ? {} : { internalExpiresAt }
    return { ...rest, fields, ...firstStep, issuedAt: now(), supersedes: refreshKeyOf(before) }
  }

  function partial(before: SessionRecord, state: RefreshState, retryAt: number): Settled<KeptRefresh> {
    const record = successorOf(before, state)
    return { value: { outcome: 'partial', record, retryAt }, keepMs: maxAgeMs, hasTokens: true }
  }

  function resultOfFailure({ before, refreshed, finalAt, previous, log }: FailedAnswer): Settled<KeptRefresh> {
    const { error } = refreshed
    pauseIfBusy(coordination, error)
    const suspectedSince = previous?.outcome === 'failed' ? previous.suspectedSince : undefined
    const refusal = judgeRefusal(error, suspectedSince, now())
    if (refusal.kind === 'final') {
      return { value: { outcome: 'rejected', finalAt }, keepMs: Math.max(0, finalAt - now()) + keepMs }
    }
    const level = refusal.kind === 'suspected' || isTemporary(error) ? 'warn' : 'error'
    log[level]({ event: 'refresh_failed', err: error }, 'the identity provider did not refresh a session')
    const retryAt = now() + pauseSecondsAfter(error) * 1000
    if (refreshed.outcome === 'partial') return partial(before, refreshed.state, retryAt)
    if (refusal.kind === 'suspected') {
      return { value: { outcome: 'failed', retryAt, suspectedSince: refusal.since }, keepMs: SUSPICION_KEPT_MS }
    }
    return { value: { outcome: 'failed', retryAt }, keepMs: retryAt - now() }
  }

  return {
    checkpointOf: (before, reached) => partial(before, reached, now()),
    resultOf(answer) {
      const { before, refreshed } = answer
      if (refreshed.outcome !== 'failed' && isLoggedOutHere(coordination, before.id)) {
        const { fields } = refreshed.outcome === 'complete' ? refreshed : refreshed.state
        abandon(idp, fields.refresh_token)
        return { value: { outcome: 'rejected', finalAt: 0 }, keepMs }
      }
      if (refreshed.outcome !== 'complete') return resultOfFailure({ ...answer, refreshed })
      const record = successorOf(before, refreshed)
      return { value: { outcome: 'refreshed', record }, keepMs: maxAgeMs, hasTokens: true }
    }
  }
}

interface FailedAnswer extends RefreshAnswer {
  readonly refreshed: Exclude<Refreshed, { readonly outcome: 'complete' }>
}

/** True if a repetition may help. Otherwise the operator has to fix something. */
function isTemporary(error: unknown): boolean {
  return error instanceof CoordinationError || (error instanceof UpstreamError && !error.isRefusal)
}
