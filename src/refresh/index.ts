/**
 * Finds the current session of a request, and refreshes it if necessary. Requests of one session share one refresh. Only
 * this file knows when a request stops waiting for a refresh.
 */
import { randomUUID } from 'node:crypto'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import {
  type CookieSession,
  isKeptInRedis,
  type SessionRecord,
  type SessionReference,
  withOwnFields
} from '../session/record.js'
import { requireStorable } from '../session/session-cookie.js'
import { RedisUnavailableError, StoredDataError } from '../store/redis-errors.js'
import { StoreUnavailableError } from '../store/unavailable.js'
import { startStopwatch, wait } from '../support/clock.js'
import { withinOrUndefined } from '../support/within.js'
import { createRefresh, type Refreshed, type RefreshParts, type RefreshRun, resultOfEnd } from './refresh.js'
import { createRefreshReport, type Log, type RefreshOutcome, type RefreshResult } from './report.js'
import { createRefreshSchedule } from './schedule.js'
import { PATIENCE_MS, requestLock } from './token-request.js'

export interface RefreshesParts extends Omit<RefreshParts, 'schedule'> {
  readonly marginSeconds: number
  readonly spreadSeconds: number
  /** The time after which a request stops waiting for the identity provider. */
  readonly timeoutSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded' | 'refreshWaited' | 'staleCookie'>
}

/** Returns the logger of a request. Most requests log nothing, so their logger is never created. */
export type RequestLog = () => Log

export interface Refreshes {
  /**
   * Returns the current session of a request with the cookie of `record`, and refreshes it if its tokens have expired. The
   * browser needs no new cookie if the result is `record` itself, or, for a session that is kept in Redis, if the result has
   * the revision of `record`. Never rejects because of the store or the identity provider.
   */
  current(record: CookieSession, log: RequestLog): Promise<Refreshed>
  /** Returns the newest session with the id of `record` that is known, or `record` itself. Never refreshes. */
  newest(record: SessionRecord): Promise<SessionRecord>
  /**
   * Replaces the fields that a handler has added to a session that is kept in Redis. Returns the new revision of the
   * session, or undefined if the session has ended.
   * @param stored the session as the handler has left it; its tokens are ignored
   * @throws StoreUnavailableError if the change cannot be stored now; StoredDataError if the stored data cannot be read;
   *   SessionTooLargeError
   */
  change(record: SessionRecord, stored: object): Promise<SessionRecord | undefined>
  /** Resolves when no refresh is in progress. */
  ended(): Promise<void>
}

// A stored session that cannot be read needs the operator, so the next attempt may come later.
const UNREADABLE_RETRY_SECONDS = 5
const CHANGE_DELAY_MS = 50

/** @example const session = await refreshes.current(record, () => log) */
export function createRefreshes(parts: RefreshesParts): Refreshes {
  const { mode, store, clock, timeoutSeconds, metrics = noMetrics } = parts
  const schedule = createRefreshSchedule({ ...parts, now: clock.now })
  const report = createRefreshReport({ mode: mode.name, metrics, now: clock.now })
  const refresh = createRefresh({ ...parts, schedule })
  const running = new Map<string, Promise<RefreshRun>>()

  /** Refreshes a session, and reports the outcome, even if no request waits for it any more. */
  async function run(record: SessionRecord, log: Log): Promise<RefreshRun> {
    const elapsedMs = startStopwatch(clock)
    try {
      const ended = await refresh(record, log).catch((error: unknown) => unreadable(record, error, log))
      const isLookUp = ended.result.kind === 'out' || ended.result.kind === 'stale'
      if (!isLookUp || ended.calls > 0) {
        report.ended(log, record.id, resultOf(ended, ended.calls === 0 ? 'kept' : 'refreshed', elapsedMs()))
      }
      return ended
    } finally {
      running.delete(record.id)
    }
  }

  /** The stored session has the wrong type or was encrypted with another secret. The old tokens stay in use. */
  function unreadable(record: SessionRecord, error: unknown, log: Log): RefreshRun {
    reportUnreadable(error, log)
    const reason = 'unreadable'
    return {
      result: { kind: 'unavailable', record, reason, retryAfterSeconds: UNREADABLE_RETRY_SECONDS },
      calls: 0,
      reason
    }
  }

  /** Reads the session to which a cookie refers. */
  async function read(reference: SessionReference, requestLog: RequestLog): Promise<Refreshed> {
    try {
      const found = await store.read(reference)
      if (found.kind === 'away') return { kind: 'unread', reason: 'store', retryAfterSeconds: 1 }
      if (found.kind === 'wait') return { kind: 'unread', reason: 'pending', retryAfterSeconds: 1 }
      return found.kind === 'ended' ? resultOfEnd(found) : found
    } catch (error) {
      reportUnreadable(error, requestLog())
      return { kind: 'unread', reason: 'unreadable', retryAfterSeconds: UNREADABLE_RETRY_SECONDS }
    }
  }

  async function currentOfReference(reference: SessionReference, requestLog: RequestLog): Promise<Refreshed> {
    const found = await read(reference, requestLog)
    return found.kind === 'live' && schedule.isDue(found.record) ? refreshInTime(found.record, requestLog()) : found
  }

  /** Waits for the refresh of a session, but no longer than a request may take. */
  async function refreshInTime(record: SessionRecord, log: Log): Promise<Refreshed> {
    const elapsedMs = startStopwatch(clock)
    const joined = running.get(record.id)
    const refreshing = joined ?? run(record, log)
    running.set(record.id, refreshing)
    const ended = await withinOrUndefined(timeoutSeconds * 1000, refreshing, clock)
    if (!ended) {
      report.ended(log, record.id, { outcome: 'failed', reason: 'pending', durationMs: elapsedMs(), calls: 0 })
      if (!schedule.hasExpired(record.fields)) return { kind: 'live', record }
      return { kind: 'unavailable', record, reason: 'pending', retryAfterSeconds: 1 }
    }
    const { result } = ended
    if (!joined) return result
    // The refresh may have started for an older cookie and ended without tokens.
    if ('record' in result && result.record.rev < record.rev) return refreshInTime(record, log)
    report.ended(log, record.id, { ...resultOf(ended, 'coalesced', elapsedMs()), calls: 0 })
    return result
  }

  return {
    async current(record, requestLog) {
      if (isKeptInRedis(record)) return currentOfReference(record, requestLog)
      const elapsedMs = startStopwatch(clock)
      store.browserSent(record)
      let session = store.newerHere(record) ?? record
      if (!schedule.isDue(session)) {
        try {
          const looked = await store.look(record)
          if (looked.kind === 'stale') report.stale(requestLog(), record)
          if (looked.kind === 'newer') session = looked.record
          if (looked.kind !== 'newer' && looked.kind !== 'current') return resultOfEnd(looked)
        } catch (error) {
          return unreadable(record, error, requestLog()).result
        }
        if (!schedule.isDue(session)) {
          const { expires_at: expiresAt } = session.fields
          const kept = { outcome: 'kept', durationMs: elapsedMs(), calls: 0, expiresAt } as const
          if (schedule.isDue(record)) report.ended(requestLog(), record.id, kept)
          return { kind: 'live', record: session }
        }
      }
      const log = requestLog()
      const result = await refreshInTime(session, log)
      if (result.kind === 'stale') report.stale(log, record)
      return result
    },
    async newest(record) {
      try {
        const looked = await store.look(record)
        return looked.kind === 'newer' ? looked.record : record
      } catch (error) {
        if (error instanceof StoredDataError || error instanceof RedisUnavailableError) return record
        throw error
      }
    },
    async change(record, stored) {
      let session = record
      requireStorable({ ...record, fields: withOwnFields(record.fields, stored) })
      // A refresh of this process must not take this lock for its own.
      let owner = randomUUID()
      const waitedMs = startStopwatch(clock)
      while (waitedMs() < PATIENCE_MS) {
        const answer = await requestLock(parts, session, PATIENCE_MS - waitedMs(), owner)
        switch (answer.kind) {
          case 'mine': {
            if (!(await store.mayUse(answer.lock))) {
              // Without this, nobody could refresh the session until the lock ends. If the lock was not given back, its owner
              // gets it again.
              const released = await store.save(answer.lock, { kind: 'failure', pauseMs: 0, isDoubtful: false })
              if (released.kind !== 'unknown') owner = randomUUID()
              break
            }
            const fields = withOwnFields(session.fields, stored)
            const next = { ...session, rev: session.rev + 1, fields }
            const saved = await store.change(answer.lock, next)
            if (saved.kind === 'saved') return next
            if (saved.kind === 'out' || saved.kind === 'ended') return undefined
            if (saved.kind === 'unknown') throw new StoreUnavailableError('store')
            session = saved.record
            continue
          }
          case 'newer':
            session = answer.record
            continue
          case 'wait':
            break
          case 'pausing':
            // A refresh has just failed. A change does not call the provider, but nobody gets the lock of the session before
            // the pause ends.
            if (waitedMs() + answer.pauseMs >= PATIENCE_MS) throw new StoreUnavailableError('pending')
            await wait(clock, answer.pauseMs)
            continue
          case 'away':
            throw new StoreUnavailableError('store')
          default:
            return undefined
        }
        await wait(clock, CHANGE_DELAY_MS)
      }
      throw new StoreUnavailableError('pending')
    },
    async ended() {
      while (running.size > 0) await Promise.allSettled(running.values())
    }
  }
}

/** Logs that a stored session has the wrong type or was encrypted with another secret. Rethrows all other errors. */
function reportUnreadable(error: unknown, log: Log): void {
  if (!(error instanceof StoredDataError)) throw error
  const message = 'a stored session cannot be read: it was encrypted with another secret, or it has the wrong type'
  log.error({ event: 'stored_data_unreadable' }, message)
}

/** @param success the outcome if the session has valid tokens now */
function resultOf({ result, calls, reason }: RefreshRun, success: RefreshOutcome, durationMs: number): RefreshResult {
  if (result.kind === 'ended' || result.kind === 'denied' || result.kind === 'out')
    return { outcome: 'rejected', durationMs, calls }
  const isPartial = 'record' in result && result.record.internalExpiresAt !== undefined
  if (reason !== undefined || result.kind !== 'live') {
    return { outcome: isPartial ? 'partial' : 'failed', reason: reason ?? 'pending', durationMs, calls }
  }
  return { outcome: success, durationMs, calls, expiresAt: result.record.fields.expires_at }
}
