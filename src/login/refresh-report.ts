/** Writes the log line of each refresh, and the metric of the requests that waited for one. Neither contains a token. */
import type { Logger } from 'pino'
import { type FailureReason, failureReasonOf } from '../base/failure-reasons.js'
import type { Metrics } from '../base/metrics.js'
import { sessionHash } from '../cookie/session-record.js'
import { OAuthError, ProviderError } from '../provider/provider-error.js'
import type { Current, End, Problem } from '../sessions/index.js'
import { isWeakness } from './authentication.js'
import { meaningOfError } from './failure.js'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/**
 * Creates the function that returns the level of a line that would come at each refresh of each session: `warn` for the first line
 * with this cause in this process, and `debug` for all others.
 */
export function createLevels(): (cause: string) => 'warn' | 'debug' {
  const causes = new Set<string>()
  return function levelOf(cause) {
    if (causes.has(cause)) return 'debug'
    causes.add(cause)
    return 'warn'
  }
}

/**
 * The outcome of a request that needed a refresh and got valid tokens:
 * - `succeeded`: the request has refreshed all tokens of the session
 * - `coalesced`: the request waited for the refresh of another request
 * - `already_refreshed`: no token request was needed, because the store already had newer tokens
 */
type Success = 'succeeded' | 'coalesced' | 'already_refreshed'

/** The result of a refresh. */
export interface Refreshed {
  /** `live` also if the session was not refreshed and its tokens are still valid. */
  readonly current: Current
  /** The reason why the session was not refreshed. */
  readonly problem?: Problem | undefined
  /** The error of the provider, if it is the reason. */
  readonly error?: unknown
  /** The number of token requests that were sent. */
  readonly calls: number
}

/**
 * - `rejected`: the session has ended
 * - `partial`: only some tokens are new, so a later request continues the refresh
 * - `failed`: the tokens have not changed
 * @param success the outcome if the refresh has not failed
 */
function outcomeOf({ current, problem }: Refreshed, success: Success) {
  if (current.kind === 'over') return 'rejected'
  if (current.kind === 'live' && problem === undefined) return success
  return current.record?.kind === 'half-refreshed' ? 'partial' : 'failed'
}

interface Waited {
  readonly durationMs: number
  readonly success: Success
  /** The number of requests that waited for this result. Undefined for a request that waited for the refresh of another one. */
  readonly requests?: number
}

/** @param now returns milliseconds since the epoch */
export function createRefreshReport(mode: string, metrics: Metrics, now: () => number) {
  return function reportRefresh(log: Log, sessionId: string, refreshed: Refreshed, waited: Waited): void {
    const { durationMs, success, requests } = waited
    const { current, error, calls } = refreshed
    if (calls === 0) metrics.observe('refresh_wait_seconds', durationMs / 1000)
    const outcome = outcomeOf(refreshed, success)
    // A page may send fifty requests at the same time, of which one starts the refresh. Its line counts the others, so theirs
    // would only repeat it.
    const isRepetition = requests === undefined
    if (!isRepetition && outcome !== 'already_refreshed') metrics.count('refreshes_total', { outcome })
    const fields = {
      mode,
      outcome,
      duration_ms: Math.round(durationMs),
      provider_calls: calls,
      ...(requests !== undefined && { requests }),
      session: sessionHash(sessionId)
    }
    if (current.kind === 'live' && outcome === success) {
      const level = isRepetition || outcome === 'already_refreshed' ? 'debug' : 'info'
      const expires_in = Math.round((current.record.fields.expires_at - now()) / 1000)
      log[level]({ event: 'refresh_succeeded', ...fields, expires_in }, 'session refreshed')
      return
    }
    const problem = problemOf(refreshed)
    const reason = current.kind === 'over' ? reasonOfEnd(current.end, error) : reasonOfProblem(problem, error)
    const level = isRepetition ? 'debug' : levelOf(error)
    const message =
      current.kind === 'over' ? 'session ended at its refresh' : `session not refreshed: ${MESSAGES[problem]}`
    log[level]({ event: 'refresh_failed', ...fields, reason, ...(error !== undefined && { err: error }) }, message)
  }
}

const MESSAGES: Readonly<Record<Problem, string>> = {
  pending: 'another refresh of this session has not ended, or its result is not stored yet',
  store: 'Redis is unavailable',
  unreadable: 'the stored session cannot be read',
  paused: 'the identity provider asked for a pause, or has just failed',
  provider: 'the identity provider did not refresh the session',
  refused: 'the identity provider refused the refresh token, but the fault may be temporary'
}

/** If there is no error of the provider, no request was sent, because an earlier one has just failed. */
function problemOf({ problem = 'pending', error }: Refreshed): Problem {
  return problem === 'provider' && error === undefined ? 'paused' : problem
}

/** The error says more than the problem. */
function reasonOfProblem(problem: Problem, error: unknown): FailureReason {
  return error === undefined ? PROBLEM_REASONS[problem] : failureReasonOf(error)
}

/** The error says more than the end, unless the session has ended for another reason, such as a logout. */
function reasonOfEnd(end: End, error: unknown): FailureReason {
  if (end.reason === 'denied' && isWeakness(end)) return 'insufficient_user_authentication'
  return end.reason === 'refused' && error !== undefined ? failureReasonOf(error) : END_REASONS[end.reason]
}

/** The reasons of refreshes that have failed, for the log and the metrics. */
export const PROBLEM_REASONS: Readonly<Record<Problem, FailureReason>> = {
  pending: 'refresh_pending',
  store: 'redis_unavailable',
  unreadable: 'stored_data_unreadable',
  paused: 'refresh_paused',
  provider: 'provider_refused',
  refused: 'provider_refused'
}

const END_REASONS: Readonly<Record<End['reason'], FailureReason>> = {
  logged_out: 'signed_out',
  replaced: 'signed_out',
  denied: 'account_not_allowed',
  refused: 'provider_refused',
  other_identity: 'identity_mismatch',
  failed: 'server_error',
  lost: 'session_lost'
}

/**
 * A refused refresh token is normal, because users sign out elsewhere, and so is a refresh that another request or replica has
 * not finished.
 */
function levelOf(error: unknown): 'info' | 'warn' | 'error' {
  if (error === undefined || (error instanceof OAuthError && error.meaning === 'end')) return 'info'
  return needsOperator(error) ? 'error' : 'warn'
}

/** True if the same request cannot succeed later, unless the operator corrects something. */
function needsOperator(error: unknown): boolean {
  if (failureReasonOf(error) === 'identity_mismatch') return true
  if (meaningOfError(error) === 'ambiguous') return false
  return error instanceof ProviderError ? error.isRejection : true
}
