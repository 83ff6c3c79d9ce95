/**
 * Refreshes the tokens of a session. A provider may accept a refresh token only once. So a process may send the token only under
 * the lease of the session, and at most one process has the lease. The *record* is the session at its newest revision.
 * ARCHITECTURE.md explains the design.
 */

import { isKeptInRedis, MAX_STORED_BYTES, type SessionRecord, sizeOf, withCustomFields } from '../cookie/record.js'
import { type Access, type CheckedClaims, type Denial, denialFields, endReasonOf } from '../login/access.js'
import { revokeInBackground } from '../login/grants.js'
import type { Mode, TokenStep } from '../login/mode.js'
import type { IdentityProvider } from '../provider/client.js'
import {
  OAuthError,
  OtherIdentityError,
  ProviderError,
  rescuedRefreshToken,
  ScopeRefusedError,
  UnusableTokenSetError
} from '../provider/errors.js'
import { isTemporaryCode } from '../provider/refusal.js'
import { needsCheck, uncheckedRecord } from './access-check.js'
import { StoreUnavailableError } from './cells.js'
import {
  createSuccesses,
  isLasting,
  meaningOfError,
  pauseIfBusy,
  pauseSecondsAfter,
  retrySecondsOf
} from './failure.js'
import { acquireLease, type LeaseDependencies, patience } from './lease.js'
import type { SessionKey } from './redis-cells.js'
import type { Log, RefreshProblem } from './report.js'
import type { RefreshSchedule } from './schedule.js'
import type { Commit, GrantedLease } from './store.js'
import { refusedAgain } from './transitions.js'
import type { UserSessions } from './user-sessions.js'

export interface RefreshDependencies extends LeaseDependencies {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue' | 'revokeRefreshToken'>
  readonly schedule: RefreshSchedule
  /** Decides which accounts may stay signed in. If undefined, all accounts may stay signed in. */
  readonly access?: Access | undefined
  readonly userSessions?: Pick<UserSessions, 'shouldJoin' | 'joinAgain'> | undefined
}

/**
 * What the caller of a refresh gets.
 * - `live`: `record` has valid tokens. It may be the unchanged session, if an early refresh was not possible.
 * - `over`: the session has ended, and `why` is the reason
 * - `unavailable`: there are no valid tokens now. The browser should get `record`, because it may contain a new refresh token.
 *   `record` is undefined if the session is kept in Redis and was not read.
 */
export type Refreshed =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'over'; readonly why: string }
  | {
      readonly kind: 'unavailable'
      readonly why: RefreshProblem
      readonly retryAfterSeconds: number
      readonly record: SessionRecord | undefined
    }

interface Ended {
  readonly result: Refreshed
  /** The reason why the session was not refreshed. It is set even if the current tokens are still valid. */
  readonly problem?: RefreshProblem | undefined
}

export interface RefreshRun extends Ended {
  /** The number of token requests that were sent. */
  readonly calls: number
}

// A refresh in dual mode needs two requests. If the internal token expires before the second request, both are repeated.
const MAX_CALLS = 4

/** @example const { result } = await createRefresh(dependencies).refresh(record, log) */
export function createRefresh(dependencies: RefreshDependencies) {
  const { mode, idp, store, schedule, clock, access, userSessions } = dependencies
  const successes = createSuccesses()

  /** Returns what `usable` returns, for a refresh that failed with the problem `why`. */
  function notRefreshed(id: string, why: RefreshProblem, retryAfterSeconds = 1): Ended {
    return { result: usable(id, why, retryAfterSeconds), problem: why }
  }

  /**
   * Returns the result of a refresh that obtained no new tokens: `live` while the current tokens are valid, otherwise
   * `unavailable`.
   */
  function usable(id: string, why: RefreshProblem, retryAfterSeconds: number): Refreshed {
    const record = store.newest(id)
    if (record && !schedule.hasExpired(record.fields)) return { kind: 'live', record }
    return { kind: 'unavailable', why, retryAfterSeconds, record }
  }

  function over(why: string): Ended {
    return { result: { kind: 'over', why } }
  }

  /**
   * Refreshes a session. For each session, only one call may run at a time in a process. The refresh continues even if the
   * browser's request has ended.
   */
  async function refresh(session: SessionKey, log: Log): Promise<RefreshRun> {
    const { id } = session
    const sent = { calls: 0 }
    try {
      return { ...(await untilFresh(session, sent, log)), ...sent }
    } catch (error) {
      // `sendRequest` turns every error of a token request into an outcome, so this error can only mean that the queue for token
      // requests is full.
      if (error instanceof ProviderError) {
        logFailure(error, log)
        return { ...notRefreshed(id, 'provider', retrySecondsOf(error)), ...sent }
      }
      if (!(error instanceof StoreUnavailableError)) throw error
      return { ...notRefreshed(id, problemOf(error, log), error.retryAfterSeconds), ...sent }
    }
  }

  /**
   * Repeatedly acquires the lease and sends a token request, until the session no longer needs a refresh. Dual mode needs two
   * requests.
   */
  async function untilFresh(session: SessionKey, sent: { calls: number }, log: Log): Promise<Ended> {
    const { id } = session
    let mayWait = patienceFor(store.newest(id))
    let omitsScope = false
    while (sent.calls < MAX_CALLS) {
      const known = store.newest(id)
      if (known && !schedule.isDue(known)) return { result: { kind: 'live', record: known } }
      const isUrgent = known !== undefined && mode.isSecondRequest(known)
      // Without a record there is no refresh token to send. Ask for the lease anyway: `acquire` then starts the recovery time,
      // during which another process can restore the record.
      const queue = known ? 'refresh' : undefined
      const request = { session, rev: known?.rev, queue, isUrgent, mayWait, user: userOf(known) } as const
      const acquired = await acquireLease(dependencies, request)
      switch (acquired.kind) {
        case 'newer':
          continue
        case 'over':
          return over(acquired.why)
        case 'busy':
          return notRefreshed(id, 'pending')
        case 'paused':
          return notRefreshed(id, acquired.why, Math.ceil(acquired.ms / 1000))
      }
      sent.calls++
      const stopped = await sendRequest(acquired.record as SessionRecord, acquired.lease, omitsScope, log)
      if (stopped === 'refused scope') omitsScope = true
      else if (stopped) return stopped
      mayWait = patienceFor(store.newest(id))
    }
    return notRefreshed(id, 'pending')
  }

  /** An early refresh does not wait for a lease, because the tokens are still valid. */
  function patienceFor(session: SessionRecord | undefined): () => boolean {
    return session && !schedule.hasExpired(session.fields) ? () => false : patience(clock)
  }

  /**
   * Sends one token request under the lease, and stores its outcome. Returns undefined if the refresh can continue with newer
   * tokens, and `refused scope` if it can continue with a request that names no scopes.
   */
  async function sendRequest(
    session: SessionRecord,
    lease: GrantedLease,
    omitsScope: boolean,
    log: Log
  ): Promise<Ended | 'refused scope' | undefined> {
    const isSecond = mode.isSecondRequest(session)
    let step: TokenStep
    let next: SessionRecord
    try {
      step = await lease.send(timeoutMs => mode.nextRequest(session, timeoutMs, omitsScope))
      successes.note(session.id, store.now())
      next = nextRevision(session, step, store.now(), userSessions?.shouldJoin(session, store.now()))
    } catch (error) {
      if (error instanceof ScopeRefusedError) {
        logFailure(error, log)
        await lease.commit({ kind: 'failure', pauseMs: 0, isAmbiguous: false })
        return 'refused scope'
      }
      return storeFailure(session, lease, error, log)
    }
    if (next.listedAt !== session.listedAt) userSessions?.joinAgain(session.id)
    const { claims } = step
    const judgement = claims && access?.judge(claims)
    if (access && needsCheck({ session, judgement, isSecond })) return checkAccess(session, next, claims, lease, log)
    return storeTokens(next, lease)
  }

  /** Returns undefined if these tokens or newer tokens are stored. */
  async function storeTokens(next: SessionRecord, lease: GrantedLease, pauseSeconds = 0): Promise<Ended | undefined> {
    return afterCommit(next, await lease.commit({ kind: 'tokens', record: next, pauseMs: pauseSeconds * 1000 }))
  }

  function afterCommit(next: SessionRecord, committed: Commit | undefined): Ended | undefined {
    if (committed?.kind === 'stored' || committed?.kind === 'newer') return undefined
    if (committed?.kind !== 'over') return notRefreshed(next.id, 'pending')
    // The session was ended for good before the tokens of this response were stored, so their refresh token was not revoked. Revoke
    // it here, so that it does not outlive the session.
    if (committed.isFinal) revokeInBackground(idp, next.fields.refresh_token)
    return over(committed.why)
  }

  /**
   * Checks the access list, and then stores the new access tokens or the end of the session. During the check, the lease stays, so
   * no other process sends a token request. If this process dies, another process gets the lease, and repeats the token request and
   * the check.
   */
  async function checkAccess(
    session: SessionRecord,
    next: SessionRecord,
    claims: CheckedClaims | undefined,
    lease: GrantedLease,
    log: Log
  ): Promise<Ended | undefined> {
    const stored = await lease.commit({ kind: 'unchecked', record: uncheckedRecord(session, next) })
    if (stored?.kind !== 'stored') return afterCommit(next, stored)
    const denial = await denialAtRefresh(next, claims, log)
    if (denial) {
      lease.giveUp()
      return endDenied(next, denial, log)
    }
    // Only the owner of the lease may store the access tokens. Otherwise another process may have sent the same refresh token.
    const checked = await lease.commit({ kind: 'change', record: { ...next, rev: next.rev + 1 } })
    return checked?.kind === 'busy' ? undefined : afterCommit(next, checked)
  }

  /**
   * Decides whether an account is still allowed. If the user info cannot be read, the session continues until the next refresh,
   * because a failure of the provider must not sign users out.
   * @param claims undefined if the response had no ID token, but an earlier check has not ended
   */
  async function denialAtRefresh(
    { fields, identity, isAllowedByIdToken }: SessionRecord,
    claims: CheckedClaims | undefined,
    log: Log
  ): Promise<Denial | undefined> {
    try {
      const { access_token: accessToken } = mode.tokens(fields, store.now()).internal
      // A permanent refusal of the user info is no outage if the ID token alone allowed the login: then the claim is gone.
      if (claims) return await access?.decide({ claims, accessToken, mayRefuse: isAllowedByIdToken === true })
      return await access?.decide({ claims: identity && { sub: identity.sub }, accessToken, mayRefuse: false })
    } catch (error) {
      const message = 'could not check whether an account is still allowed, so its session continues'
      // Any other error is a fault of this server, so it would also prevent all later checks.
      const isProviders = error instanceof OAuthError || error instanceof ProviderError
      log[isProviders ? 'warn' : 'error']({ event: 'account_not_checked', err: error }, message)
      return undefined
    }
  }

  /**
   * Ends a session like a logout: all processes remember the end, and a later revision does not revive the session. If the end
   * cannot be stored now, this process stores it later.
   */
  async function endDenied(session: SessionRecord, denial: Denial, log: Log): Promise<Ended> {
    const why = endReasonOf(denial)
    revokeInBackground(idp, session.fields.refresh_token)
    await store.logOut(session, why)
    const message = 'session ended: its account is no longer allowed'
    log.warn({ event: 'account_no_longer_allowed', ...denialFields(denial) }, message)
    return over(why)
  }

  /** Stores the failure of a token request. Returns undefined if another process has stored newer tokens. */
  async function storeFailure(
    session: SessionRecord,
    lease: GrantedLease,
    error: unknown,
    log: Log
  ): Promise<Ended | undefined> {
    const { id } = session
    pauseIfBusy(store, error)
    const meaning = meaningOfError(error)
    const isOther = error instanceof OtherIdentityError
    const suspicion = meaning === 'ambiguous' ? refusedAgain(lease.suspect, store.now()) : undefined
    const isOver = isOther || meaning === 'end' || (suspicion && isLasting(suspicion, successes.ofOthers(id)))
    if (!(error instanceof OAuthError) || meaning !== 'end') logFailure(error, log)
    if (isOver) {
      const why = isOther ? 'other_identity' : 'refused'
      const ended = await lease.commit({ kind: 'over', why })
      if (ended?.kind === 'stored') return over(why)
      if (ended?.kind === 'over') return over(ended.why)
      // If the rejection was not stored, do not treat the session as over: another process may have refreshed it successfully. In
      // that case, this process continues with the newer tokens.
      return ended?.kind === 'newer' ? undefined : notRefreshed(id, 'pending')
    }
    const pauseSeconds = pauseSecondsAfter(error, suspicion?.refusals)
    // An unusable response can still contain a new refresh token. The old refresh token may be invalid now, so store the new one.
    const refresh_token = rescuedRefreshToken(error)
    if (refresh_token !== undefined) {
      const next = { ...session, fields: { ...session.fields, refresh_token }, rev: session.rev + 1 }
      return (await storeTokens(next, lease, pauseSeconds)) ?? notRefreshed(id, 'provider', pauseSeconds)
    }
    const isAmbiguous = suspicion !== undefined
    const failed = await lease.commit({ kind: 'failure', pauseMs: pauseSeconds * 1000, isAmbiguous })
    if (failed?.kind === 'newer') return undefined
    if (failed?.kind !== 'over') return notRefreshed(id, isAmbiguous ? 'refused' : 'provider', pauseSeconds)
    // The logout may not have revoked the refresh token of the first response, so revoke it here.
    if (session.kind === 'half-refreshed') revokeInBackground(idp, session.fields.refresh_token)
    return over(failed.why)
  }

  return { refresh, usable }
}

function userOf(session: SessionRecord | undefined): string | undefined {
  const { identity } = session ?? {}
  return identity && JSON.stringify([identity.iss, identity.sub])
}

/**
 * Returns the next revision of a session, with the tokens of a response. The response does not contain the fields that a request
 * handler has added. If the session is kept in Redis, these fields are copied from its previous revision.
 */
function nextRevision(session: SessionRecord, { state }: TokenStep, now: number, joinsLists = false): SessionRecord {
  const { id, rev, loggedInAt, isAllowedByIdToken, key } = session
  const listedAt = joinsLists ? now : session.listedAt
  const next: SessionRecord = {
    ...state,
    id,
    rev: rev + 1,
    loggedInAt,
    issuedAt: now,
    ...(listedAt !== undefined && { listedAt }),
    ...(isAllowedByIdToken && { isAllowedByIdToken }),
    ...(key !== undefined && { key })
  }
  if (!isKeptInRedis(next)) return next
  const record = { ...next, fields: withCustomFields(next.fields, session.fields) }
  const bytes = sizeOf(record)
  if (bytes <= MAX_STORED_BYTES) return record
  const detail = `with the new tokens, the session would be ${bytes} bytes long, but the limit is ${MAX_STORED_BYTES}`
  throw new UnusableTokenSetError(detail, next.fields.refresh_token)
}

/** Translates an error of the store into a `RefreshProblem`. If the stored data cannot be read, also logs an error. */
export function problemOf({ problem }: StoreUnavailableError, log: Log): RefreshProblem {
  if (problem !== 'unreadable') return 'store'
  const message = 'a stored session cannot be read: it was encrypted with another secret, or it has the wrong type'
  log.error({ event: 'stored_data_unreadable' }, message)
  return 'unreadable'
}

function logFailure(error: unknown, log: Log): void {
  if (error instanceof OtherIdentityError) {
    const message = 'session ended: the response to its refresh was for another user or from another issuer'
    log.error({ event: 'refresh_failed', err: error }, message)
    return
  }
  const level = needsOperator(error) ? 'error' : 'warn'
  log[level]({ event: 'refresh_failed', err: error }, 'the identity provider did not refresh a session')
}

/** True if the same request cannot succeed later, unless the operator corrects something. */
function needsOperator(error: unknown): boolean {
  if (meaningOfError(error) === 'ambiguous') return false
  if (error instanceof ProviderError) return error.isRejection
  return !(error instanceof OAuthError) || !isTemporaryCode(error.error)
}
