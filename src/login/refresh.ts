/**
 * Refreshes the tokens of a session. A provider may accept a refresh token only once, so every token request is sent under the lease
 * of the session (`sessions/under-lease.ts`).
 */
import { failureReasonOf } from '../base/failure-reasons.js'
import {
  isKeptInRedis,
  MAX_STORED_BYTES,
  requesterOf,
  type SessionRecord,
  sessionHash,
  sizeOf,
  withCustomFields
} from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { ProviderError, unusableTokens } from '../provider/provider-error.js'
import {
  type Current,
  type Grant,
  type Problem,
  type Result,
  type Revision,
  type Sessions,
  StoreUnavailableError,
  type UserSessions
} from '../sessions/index.js'
import { type Access, type CheckedClaims, denialFields } from './access.js'
import { needsCheck, uncheckedRecord } from './access-check.js'
import { type Evidence, refusalIn } from './evidence.js'
import { meaningOfError, pauseIfThrottled, pauseSecondsAfter, retrySecondsOf } from './failure.js'
import type { Mode, TokenStep } from './mode.js'
import { createLevels, type Log, type Refreshed } from './refresh-report.js'
import type { RefreshSchedule } from './schedule.js'
import { revokeInBackground } from './token-requests.js'

export interface RefreshDependencies {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'inTokenQueue' | 'revokeRefreshToken' | 'credentialsId'>
  readonly sessions: Pick<Sessions, 'now' | 'current' | 'known' | 'recover' | 'underLease' | 'pause'>
  readonly schedule: RefreshSchedule
  readonly evidence: Evidence
  /** Decides which accounts may stay signed in. If undefined, all accounts may stay signed in. */
  readonly access?: Access | undefined
  readonly userSessions?: Pick<UserSessions, 'shouldJoin' | 'joinAgain'> | undefined
}

/** A refresh in progress. */
interface Run {
  readonly log: Log
  /** The number of token requests that were sent. */
  calls: number
  omitsScope: boolean
  /** The error of the provider that ended the refresh. */
  error?: unknown
}

// A refresh in dual mode needs two requests. If the internal token expires before the second request, both are repeated.
const MAX_CALLS = 4

/** @example const { current } = await createRefresh(dependencies).refresh(record, log) */
export function createRefresh(dependencies: RefreshDependencies) {
  const { mode, idp, sessions, schedule } = dependencies
  const requestTokens = createTokenRequest(dependencies)

  /** Returns what this process knows of a session that could not be refreshed because of the problem `why`. */
  function notRefreshed(id: string, why: Problem, retryAfterSeconds = 1): Current {
    const known = sessions.known(id)
    return known.kind === 'over' ? known : { ...known, kind: 'unavailable', why, retryAfterSeconds }
  }

  /** A session whose tokens are still valid is live, although it could not be refreshed. */
  function whileValid(current: Current): Current {
    if (current.kind !== 'unavailable' || !current.record || schedule.hasExpired(current.record.fields)) return current
    // A cell that cannot be decrypted may contain a logout, so do not use the tokens.
    if (current.why === 'unreadable') return current
    const { record, isUnsaved } = current
    return { kind: 'live', record, ...(isUnsaved && { isUnsaved }) }
  }

  /** Sends one token request. Dual mode needs two for a refresh, so its session is still due after the first one. */
  async function sendRequest(due: SessionRecord, run: Run): Promise<Current> {
    const isUrgent = mode.isSecondRequest(due)
    const requester = requesterOf(due)
    const inSlot = <T>(send: () => Promise<T>) => idp.inTokenQueue('refresh', { isUrgent, requester }, send)
    // An early refresh does not wait for a lease, because the tokens are still valid.
    const request = { inSlot, isUrgent, mayWait: schedule.hasExpired(due.fields) }
    let newest: string | undefined
    const current = await sessions.underLease(due, request, async (session, grant) => {
      run.calls++
      if (session.kind === 'half-refreshed') newest = session.fields.refresh_token
      const result = await requestTokens(session, grant, run)
      if ('record' in result) newest = result.record?.fields.refresh_token
      return result
    })
    // If the session was ended for good meanwhile, the newest refresh token was not revoked.
    if (current.kind === 'over' && newest !== undefined && isForGood(current)) revokeInBackground(idp, newest)
    return current
  }

  async function untilFresh(session: Revision, run: Run): Promise<Current> {
    const known = sessions.known(session.id)
    let current = known.kind === 'unavailable' ? await sessions.recover(session) : known
    while (current.kind === 'live' && schedule.isDue(current.record)) {
      if (run.calls === MAX_CALLS) return notRefreshed(session.id, 'pending')
      current = await sendRequest(current.record, run)
    }
    return current
  }

  return {
    /**
     * Refreshes a session. For each session, only one call may run at a time in a process. The refresh continues even if the
     * browser's request has ended.
     */
    async refresh(session: Revision, log: Log): Promise<Refreshed> {
      const run: Run = { log, calls: 0, omitsScope: false }
      const current = await untilFresh(session, run).catch((error: unknown) => {
        if (error instanceof StoreUnavailableError) {
          return notRefreshed(session.id, problemOf(error, log), error.retryAfterSeconds)
        }
        // Every error of a token request becomes a result, so this error can only mean that the queue for token requests is full.
        if (!(error instanceof ProviderError)) throw error
        run.error = error
        return notRefreshed(session.id, 'provider', retrySecondsOf(error))
      })
      const problem = current.kind === 'unavailable' ? current.why : undefined
      return { current: whileValid(current), problem, error: run.error, calls: run.calls }
    },
    /** Returns what a request gets if the session cannot be refreshed now. */
    withoutRefresh: (id: string, problem: Problem, retryAfterSeconds: number): Refreshed => ({
      current: whileValid(notRefreshed(id, problem, retryAfterSeconds)),
      problem,
      calls: 0
    })
  }
}

/** True if the end is a logout or an end by the access list. Any other end concerns only one revision. */
function isForGood({ end }: Extract<Current, { readonly kind: 'over' }>): boolean {
  return end.reason === 'logged_out' || end.reason === 'denied'
}

/** Creates the function that sends the next token request of a session, and decides what its response means. */
function createTokenRequest({ mode, idp, sessions, access, userSessions, evidence }: RefreshDependencies) {
  const levelOf = createLevels()

  /**
   * Checks the access list after the unchecked session was stored (`access-check.ts`). If the account cannot be checked, the session
   * continues until the next refresh, because a failure of the provider must not sign users out.
   * @param claims undefined if the response had no ID token
   */
  async function check(next: SessionRecord, claims: CheckedClaims | undefined, log: Log): Promise<Result> {
    const { fields, identity, isAllowedByIdToken } = next
    const session = sessionHash(next.id)
    try {
      const { access_token: accessToken } = mode.tokens(fields, sessions.now()).internal
      // A permanent refusal of the user info is no outage if the ID token alone allowed the login: then the claim is gone.
      const mayRefuse = isAllowedByIdToken === true
      const denial = await access?.decide({ claims, subject: identity?.sub, accessToken, mayRefuse })
      if (denial) {
        const line = { event: 'account_no_longer_allowed', ...denialFields(denial), session }
        log.warn(line, 'session ended: its account is no longer allowed')
        return { kind: 'over', end: denial, isFinal: true }
      }
    } catch (error) {
      const message = 'could not check whether an account is still allowed, so its session continues'
      log[levelOfUnchecked(error)]({ event: 'account_not_checked', session, err: error }, message)
    }
    // Only the owner of the lease may store the access tokens. Otherwise another process may have sent the same refresh token.
    return { kind: 'change', record: { ...next, rev: next.rev + 1 } }
  }

  function levelOfUnchecked(error: unknown): 'error' | 'warn' | 'debug' {
    // Any other error is a fault of this server, so it would also prevent all later checks.
    if (!(error instanceof ProviderError)) return 'error'
    const isTemporary = error.problem !== 'invalid_response' || Number(error.status) > 403
    return isTemporary ? 'warn' : levelOf(error.message)
  }

  function resultOfError(session: SessionRecord, error: unknown, grant: Grant, seenBy: string, run: Run): Result {
    const reason = failureReasonOf(error)
    if (reason === 'scope_refused') {
      const message = 'the identity provider refused a refresh that names scopes, so it is repeated without them'
      run.log.warn({ event: 'refresh_scope_refused', session: sessionHash(session.id), err: error }, message)
      run.omitsScope = true
      return { kind: 'failure', pauseMs: 0 }
    }
    run.error = error
    pauseIfThrottled(sessions, 'refresh', error)
    const by = requesterOf(session)
    if (reason === 'client_rejected') evidence.clientRejected(by.user)
    const refusal = refusalIn(error, seenBy)
    const series = refusal && grant.refusedAgain(refusal.series)
    const previous = refusal && grant.suspect?.[refusal.series]?.last
    const isProven = refusal && series && evidence.refused(refusal, by, series, previous)
    const isOther = reason === 'identity_mismatch'
    if (isOther || isProven || meaningOfError(error) === 'end') {
      return { kind: 'over', end: { reason: isOther ? 'other_identity' : 'refused' } }
    }
    const pauseMs = pauseSecondsAfter(error, series?.refusals) * 1000
    // An unusable response can still contain a new refresh token. The old refresh token may be invalid now, so store the new one.
    const refresh_token = ProviderError.refreshTokenOf(error)
    if (refresh_token === undefined) return { kind: 'failure', pauseMs, refusedAs: refusal?.series }
    const record = { ...session, fields: { ...session.fields, refresh_token }, rev: session.rev + 1 }
    return { kind: 'tokens', record, pauseMs }
  }

  return async function requestTokens(session: SessionRecord, grant: Grant, run: Run): Promise<Result> {
    const isSecond = mode.isSecondRequest(session)
    let step: TokenStep
    let next: SessionRecord
    const seenBy = idp.credentialsId()
    try {
      step = await mode.nextRequest(session, grant.leftMs(), run.omitsScope)
      const now = sessions.now()
      evidence.refreshed(requesterOf(session), seenBy, grant.suspect, now)
      next = nextRevision(session, step, now, userSessions?.shouldJoin(session, now))
    } catch (error) {
      // If the credentials were replaced during the request, nobody knows which ones were sent, so they count as others.
      const sent = seenBy === idp.credentialsId() ? seenBy : 'replaced'
      return resultOfError(session, error, grant, sent, run)
    }
    if (next.listedAt !== session.listedAt) userSessions?.joinAgain(session.id)
    const { claims } = step
    if (!access || !needsCheck({ session, judgement: access.judge(claims), isSecond }))
      return { kind: 'tokens', record: next, pauseMs: 0 }
    const record = uncheckedRecord(session, next)
    return { kind: 'unfinished', record, finish: () => check(next, claims, run.log) }
  }
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
  throw unusableTokens(detail, { refreshToken: next.fields.refresh_token })
}

/** Returns the problem of an unavailable store. If the stored data cannot be read, also logs an error. */
export function problemOf({ problem }: StoreUnavailableError, log: Log): Problem {
  if (problem !== 'unreadable') return 'store'
  const message = 'a stored session cannot be read: it was encrypted with another secret, or it has the wrong type'
  log.error({ event: 'stored_data_unreadable' }, message)
  return 'unreadable'
}
