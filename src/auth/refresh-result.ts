/** Turns the response of the identity provider to a refresh into the result that the coordination store keeps. */
import { type Coordination, CoordinationError, type Settled } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { OtherIdentityError, UpstreamError } from '../idp/errors.js'
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
  /**
   * The time in milliseconds for which the store keeps the result that a session has ended. Requests that the browser
   * sent before still need this result.
   */
  readonly keepMs: number
  /** The lifetime of a session cookie in milliseconds. The store keeps a result with tokens for the same time. */
  readonly maxAgeMs: number
}

export interface RefreshAnswer {
  /** The session before the refresh. */
  readonly before: SessionRecord
  readonly refreshed: Refreshed
  /**
   * If the provider rejected the refresh token, the session counts as ended from this time, in milliseconds since the
   * epoch. Before this time, an earlier owner of the lock may still store a successful result.
   */
  readonly finalAt: number
  /** The kept result that this refresh replaces, if there was one. */
  readonly previous: KeptRefresh | undefined
  readonly log: Log
}

export interface RefreshResults {
  /**
   * Returns the result to keep after a refresh. If the session was logged out meanwhile, revokes the new refresh token.
   */
  resultOf(answer: RefreshAnswer): Settled<KeptRefresh>
  /** Returns the result to keep after the first of the two token requests of a refresh in dual mode. */
  checkpointOf(before: SessionRecord, reached: RefreshState): Settled<KeptRefresh>
}

// The time for which the first `invalid_request` error for a refresh token is remembered. It must be longer than the
// time after which the refresh token is considered invalid (refresh-verdict.ts).
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
    if (error instanceof OtherIdentityError) {
      const message = 'session ended: the response to its refresh is about another person or from another issuer'
      log.error({ event: 'refresh_failed', err: error }, message)
      // The result is kept as long as a copy of the cookie can exist. Otherwise such a copy could be refreshed again, and
      // a response without an ID token would be accepted.
      return { value: { outcome: 'rejected', finalAt }, keepMs: Math.max(0, finalAt - now()) + maxAgeMs }
    }
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

/** True if the same refresh may succeed later. Otherwise the operator has to fix something. */
function isTemporary(error: unknown): boolean {
  return error instanceof CoordinationError || (error instanceof UpstreamError && !error.isRefusal)
}
