/**
 * Refreshes the tokens of a session. Providers may accept a refresh token only once, so a process must own the lock of the
 * session to send it. ARCHITECTURE.md explains the design.
 */
import { type Access, type CheckedClaims, denialFields, denialOf, endReasonOf } from '../modes/access.js'
import { revokeInBackground } from '../modes/grants.js'
import type { Mode, Step } from '../modes/mode.js'
import type { IdentityProvider } from '../provider/client.js'
import { OtherIdentityError, ProviderError, rescuedRefreshToken, UnusableTokenSetError } from '../provider/errors.js'
import { isKeptInRedis, MAX_STORED_BYTES, type SessionRecord, sizeOf, withOwnFields } from '../session/record.js'
import type { Lock, Looked, SaveAnswer, SessionStore } from '../store/session-store.js'
import type { Clock } from '../support/clock.js'
import { pauseIfBusy, pauseSecondsAfter } from './busy.js'
import { judgeRejection } from './rejection.js'
import type { Log, RefreshProblem } from './report.js'
import type { RefreshSchedule } from './schedule.js'
import { NotSentError, PATIENCE_MS, requestLock, sendUnderLock } from './token-request.js'

export interface RefreshParts {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue' | 'revokeRefreshToken'>
  readonly store: SessionStore
  readonly schedule: RefreshSchedule
  readonly clock: Clock
  /** Decides which accounts may stay signed in. If undefined, all accounts may. */
  readonly access?: Access | undefined
}

/**
 * The session after a refresh.
 * - `live`: `record` has valid tokens. It may be the unchanged session, if an early refresh was not possible.
 * - `ended`: the identity provider has ended the login, so the person must sign in again
 * - `denied`: the account is not allowed any more, so the session has ended
 * - `out`: the person has logged out
 * - `stale`: the cookie is an old copy, and a browser has a newer one
 * - `missing`: the session was kept in Redis, and Redis has lost it
 * - `unread`: the session is kept in Redis, and it cannot be read now
 * - `unavailable`: the tokens have expired, and the session cannot be refreshed now. The browser should get `record`,
 *   because the refresh may have made some progress.
 */
export type Refreshed =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended' | 'denied' | 'out' | 'stale' | 'missing' }
  | { readonly kind: 'unread'; readonly reason: RefreshProblem; readonly retryAfterSeconds: number }
  | {
      readonly kind: 'unavailable'
      readonly record: SessionRecord
      readonly reason: RefreshProblem
      readonly retryAfterSeconds: number
    }

export interface RefreshRun {
  readonly result: Refreshed
  /** The number of token requests that were sent. */
  readonly calls: number
  /** Why the session was not refreshed, even if its old tokens are still valid. */
  readonly reason?: RefreshProblem | undefined
}

/**
 * Creates the function that refreshes a session. At most one call at a time may run for each session in a process. The
 * function does not stop when the browser's request has ended.
 * @example const { result } = await refresh(record, log)
 */
export function createRefresh(parts: RefreshParts): (record: SessionRecord, log: Log) => Promise<RefreshRun> {
  const { mode, idp, store, schedule, clock, access } = parts

  /** Ends without tokens. An early refresh that is not possible leaves the valid tokens in use. */
  function notNow(record: SessionRecord, reason: RefreshProblem, calls = 0, retryAfterSeconds = 1): RefreshRun {
    const result: Refreshed = schedule.hasExpired(record.fields)
      ? { kind: 'unavailable', record, reason, retryAfterSeconds }
      : { kind: 'live', record }
    return { result, calls, reason }
  }

  /** Waits for the lock of the session and then refreshes it, unless the store has a newer session. */
  return async function refresh(record, log) {
    let session = record
    for (;;) {
      const known = store.newerHere(session)
      if (known) session = known
      if (known && !schedule.isDue(session)) return { result: { kind: 'live', record: session }, calls: 0 }
      // An early refresh does not wait, because the tokens are still valid.
      const answer = await requestLock(parts, session, schedule.hasExpired(session.fields) ? PATIENCE_MS : 0)
      switch (answer.kind) {
        case 'mine':
          return sendRequests(session, answer.lock, log)
        case 'newer':
          session = answer.record
          if (!schedule.isDue(session)) return { result: { kind: 'live', record: session }, calls: 0 }
          continue
        case 'wait':
          return notNow(session, 'pending')
        case 'pausing':
          return notNow(session, 'provider', 0, Math.ceil(answer.pauseMs / 1000))
        case 'away':
          return notNow(session, 'store')
        default:
          return { result: resultOfEnd(answer), calls: 0 }
      }
    }
  }

  /** Sends one token request, or two in dual mode, and stores the outcome of each. */
  async function sendRequests(start: SessionRecord, firstLock: Lock, log: Log): Promise<RefreshRun> {
    let session = start
    let lock = firstLock
    let calls = 0
    for (;;) {
      let step: Step
      let next: SessionRecord
      try {
        step = await sendUnderLock(parts, lock, 'refresh', mode.isSecondRequest(session), timeoutMs => {
          calls++
          return mode.nextRequest(session, timeoutMs)
        })
        const { internalExpiresAt: _before, ...unchanged } = session
        next = { ...unchanged, ...step.state, rev: session.rev + 1, issuedAt: clock.now() }
        if (isKeptInRedis(session)) next = keptInRedis(next, session)
      } catch (error) {
        const failed = await fail(session, lock, error, calls, log)
        // The logout may not have known the refresh token of the first response.
        if (failed.result.kind === 'out' && session !== start) revokeInBackground(idp, session.fields.refresh_token)
        return failed
      }
      if (access && step.claims && !access.allows(step.claims)) {
        // The user info decides, and that may take long. Meanwhile the store has the new refresh token, but no new tokens
        // that other requests could use.
        const { refresh_token } = next.fields
        const withheld = { ...session, fields: { ...session.fields, refresh_token }, rev: next.rev }
        const record = step.isComplete ? withheld : next
        const saved = await store.save(lock, { kind: 'tokens', record, keepsLock: true, pauseMs: 0 })
        if (saved.kind !== 'saved' || !saved.lock) return { result: afterTokens(record, false, saved), calls }
        if (await endIfDenied(next, step.claims, saved.lock, log)) return { result: { kind: 'denied' }, calls }
        session = record
        lock = saved.lock
        if (!step.isComplete) continue
        next = { ...next, rev: next.rev + 1 }
      }
      const saved = await store.save(lock, { kind: 'tokens', record: next, keepsLock: !step.isComplete, pauseMs: 0 })
      if (saved.kind === 'saved' && saved.lock) {
        session = next
        lock = saved.lock
        continue
      }
      return { result: afterTokens(next, step.isComplete, saved), calls }
    }
  }

  /**
   * Ends the session if its account is not allowed any more. Returns true if it has ended. If the user info cannot be read,
   * the session goes on until the next refresh, because a failure of the provider must not sign anybody out.
   */
  async function endIfDenied(session: SessionRecord, claims: CheckedClaims, lock: Lock, log: Log): Promise<boolean> {
    const { access_token } = mode.tokens(session.fields, clock.now()).internal
    try {
      const denial = await access?.decide(claims, access_token)
      if (!denial) return false
      revokeInBackground(idp, session.fields.refresh_token)
      const ended = await store.save(lock, { kind: 'ended', reason: endReasonOf(denial) })
      // If the end could not be stored, a logout ends the session, because each process remembers it.
      if (ended.kind !== 'saved') await store.logOut(session)
      const message = 'session ended: its account is not allowed any more'
      log.warn({ event: 'access_lost', ...denialFields(denial) }, message)
      return true
    } catch (error) {
      const message = 'it could not be checked whether an account is still allowed, so its session goes on'
      log.warn({ event: 'access_not_checked', err: error }, message)
      return false
    }
  }

  /** Decides which session the browser gets after tokens have been stored, or could not be stored. */
  function afterTokens(next: SessionRecord, isComplete: boolean, saved: SaveAnswer): Refreshed {
    switch (saved.kind) {
      case 'out':
        // A logout always wins over a refresh.
        revokeInBackground(idp, next.fields.refresh_token)
        return { kind: 'out' }
      case 'ended':
        return resultOfEnd(saved)
      case 'newer':
        return notNow(saved.record, 'pending').result
      default:
        return isComplete ? { kind: 'live', record: next } : notNow(next, 'pending').result
    }
  }

  /** Decides which session the browser gets after a failure has been stored, or could not be stored. */
  function afterFailure(saved: SaveAnswer, failed: RefreshRun): RefreshRun {
    if (saved.kind === 'out' || saved.kind === 'ended') return { result: resultOfEnd(saved), calls: failed.calls }
    return saved.kind === 'newer' ? notNow(saved.record, 'pending', failed.calls) : failed
  }

  /** Stores the failure of a token request. */
  async function fail(
    session: SessionRecord,
    lock: Lock,
    error: unknown,
    calls: number,
    log: Log
  ): Promise<RefreshRun> {
    if (error instanceof NotSentError) {
      const saved = await store.save(lock, { kind: 'failure', pauseMs: 0, isDoubtful: false })
      return afterFailure(saved, notNow(session, error.reason, calls, error.retryAfterSeconds))
    }
    pauseIfBusy(store, error)
    const rejection = judgeRejection(error, lock.suspectMs)
    const isOther = error instanceof OtherIdentityError
    if (isOther || rejection !== 'final') logFailure(error, rejection === 'doubtful', log)
    if (isOther || rejection === 'final') {
      const saved = await store.save(lock, { kind: 'ended', reason: isOther ? 'other_identity' : 'refused' })
      if (saved.kind === 'newer') return notNow(saved.record, 'pending', calls)
      // If the rejection could not be stored, another process may have used the refresh token with success.
      if (saved.kind === 'unknown') return notNow(session, 'pending', calls)
      return { result: { kind: saved.kind === 'out' ? 'out' : 'ended' }, calls }
    }
    const retryAfterSeconds = pauseSecondsAfter(error)
    const pauseMs = retryAfterSeconds * 1000
    // An unusable response can still contain a new refresh token, and the old one may be invalid now.
    const refresh_token = rescuedRefreshToken(error)
    if (refresh_token !== undefined) {
      const next = { ...session, fields: { ...session.fields, refresh_token }, rev: session.rev + 1 }
      const saved = await store.save(lock, { kind: 'tokens', record: next, keepsLock: false, pauseMs })
      const result = afterTokens(next, false, saved)
      return result.kind === 'unavailable'
        ? { result: { ...result, reason: 'provider', retryAfterSeconds }, calls, reason: 'provider' }
        : { result, calls, reason: 'provider' }
    }
    const saved = await store.save(lock, { kind: 'failure', pauseMs, isDoubtful: rejection === 'doubtful' })
    return afterFailure(saved, notNow(session, 'provider', calls, retryAfterSeconds))
  }
}

/** Returns the result for a session that has ended in the store. */
export function resultOfEnd(end: Exclude<Looked, { readonly kind: 'current' | 'newer' }>): Refreshed {
  return { kind: end.kind === 'ended' && denialOf(end.reason) ? 'denied' : end.kind }
}

/**
 * Completes the next revision of a session that is kept in Redis. Its cookie does not have the fields that a handler has
 * added, so they must stay in the record.
 * @throws UnusableTokenSetError if the session would be too large
 */
function keptInRedis(next: SessionRecord, { fields }: SessionRecord): SessionRecord {
  const record = { ...next, fields: withOwnFields(next.fields, fields) }
  const bytes = sizeOf(record)
  if (bytes <= MAX_STORED_BYTES) return record
  const detail = `with the new tokens, the session would have ${bytes} bytes, but at most ${MAX_STORED_BYTES} are allowed`
  throw new UnusableTokenSetError(detail, next.fields.refresh_token)
}

function logFailure(error: unknown, isDoubtful: boolean, log: Log): void {
  if (error instanceof OtherIdentityError) {
    const message = 'session ended: the response to its refresh is about another person or from another issuer'
    log.error({ event: 'refresh_failed', err: error }, message)
    return
  }
  // If the same request cannot succeed later, the operator has to fix something.
  const isTemporary = error instanceof ProviderError && !error.isRejection
  const level = isDoubtful || isTemporary ? 'warn' : 'error'
  log[level]({ event: 'refresh_failed', err: error }, 'the identity provider did not refresh a session')
}
