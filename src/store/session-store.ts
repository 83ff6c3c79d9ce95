/**
 * The session store as one process sees it. It adds the memory of the process to the scripts: the newest sessions that
 * the process has stored or read, the newest revisions that browsers have sent, the locks of the process, and all
 * logouts. While Redis is away, the process answers from this memory. When Redis is back or has lost data, the process
 * stores again what it remembers.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import {
  type CookieSession,
  hasTokens,
  isKeptInRedis,
  type SessionRecord,
  type SessionReference
} from '../session/record.js'
import { type Clock, startStopwatch, wait } from '../support/clock.js'
import { createExpiringMap } from '../support/expiring-map.js'
import type { Message } from './messages.js'
import { RedisUnavailableError, StoredDataError } from './redis-errors.js'
import { LOCK_MS, MAX_PAUSE_MS, type Position, type ScriptTimes, type SessionScripts } from './scripts.js'
import type { SessionIndex, SessionsOf } from './session-index.js'
import { StoreUnavailableError } from './unavailable.js'

/** The position of the session in a request. */
export type Looked =
  /** The session of the cookie is the newest one that is known. */
  | { readonly kind: 'current' }
  | { readonly kind: 'newer'; readonly record: SessionRecord }
  /** The cookie is an old copy, and a browser has a newer one. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }

/** The session to which a cookie refers. */
export type Read =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }
  /** Redis has lost the session. */
  | { readonly kind: 'missing' }
  /** Redis has been away. The processes are storing again what they remember. */
  | { readonly kind: 'wait' }
  /** Redis cannot be used now. */
  | { readonly kind: 'away' }

/** The permission of this process to send token requests for a session. */
export interface Lock {
  readonly id: string
  /** The key of the session, if it is kept in Redis. */
  readonly key?: string | undefined
  /** The revision whose refresh token may be used. */
  readonly rev: number
  /** The owner of the lock in the store. */
  readonly owner: string
  /** Returns the milliseconds since the lock was requested. */
  readonly elapsedMs: () => number
  /** The generation of the connection in which the lock was granted. */
  readonly generation: number
  /** The time since the provider first rejected the refresh token in a doubtful way, in milliseconds. */
  readonly suspectMs: number | undefined
}

/** The answer to a request for a lock. */
export type LockAnswer =
  | Exclude<Looked, { readonly kind: 'current' }>
  | { readonly kind: 'mine'; readonly lock: Lock }
  /** Another process has the lock, or nobody gets it now. Ask again. `loss` is a reported loss to name then. */
  | { readonly kind: 'wait'; readonly loss: string | undefined }
  | { readonly kind: 'pausing'; readonly pauseMs: number }
  /** Redis cannot be used now. */
  | { readonly kind: 'away' }

/** The answer to a stored outcome. */
export type SaveAnswer =
  /** The outcome is stored. `lock` is the lock for the next token request, if it was kept and is still ours. */
  | { readonly kind: 'saved'; readonly lock: Lock | undefined }
  /** Another process has stored a newer session. */
  | { readonly kind: 'newer'; readonly record: SessionRecord }
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'out' }
  /** The store has no answer, or another process is working on the session. Tokens are remembered and stored later. */
  | { readonly kind: 'unknown' }

export type StoredOutcome =
  | {
      readonly kind: 'tokens'
      readonly record: SessionRecord
      readonly keepsLock: boolean
      readonly pauseMs: number
      /** The `iat` of the ID token of a login, in seconds since the epoch. */
      readonly issuedAt?: number | undefined
    }
  | { readonly kind: 'failure'; readonly pauseMs: number; readonly isDoubtful: boolean }
  | { readonly kind: 'ended'; readonly reason: string }

export interface SessionStore {
  /** Remembers that a browser has sent this revision. */
  browserSent(session: Version): void
  /**
   * Returns the position of the session in a request, and tells the store which revision the browser has. Uses one script.
   * @throws StoredDataError if the stored data cannot be read
   */
  look(session: SessionRecord): Promise<Looked>
  /**
   * Returns the newest session to which a cookie refers. Uses one script, and never writes. If Redis has lost the session,
   * asks all processes to store it again, and looks once more.
   * @throws StoredDataError if the stored data cannot be read
   */
  read(reference: SessionReference): Promise<Read>
  /** Returns the newest session with this id that this process knows, if it is newer than `session`. */
  newerHere(session: Version): SessionRecord | undefined
  /**
   * Requests the lock of a session.
   * @param reportedLoss the loss that an earlier answer named
   * @param owner the owner of the lock for a change. Without it, this process gets a lock again that it already has.
   * @throws StoredDataError if the stored data cannot be read
   */
  take(session: Version | SessionRecord, reportedLoss?: string, owner?: string): Promise<LockAnswer>
  /**
   * False if the lock may be lost: Redis was away since the lock was granted, or a browser has sent a newer revision. A lock
   * that is older than a second is confirmed in the store. Call it directly before a token is sent.
   */
  mayUse(lock: Lock): Promise<boolean>
  /** Stores the outcome of a token request. */
  save(lock: Lock, outcome: StoredOutcome): Promise<SaveAnswer>
  /**
   * Stores the next revision of a session that is kept in Redis, without a token request, and releases the lock.
   * @param lock a lock that was requested with its own owner
   */
  change(lock: Lock, record: SessionRecord): Promise<SaveAnswer>
  /**
   * Logs a session out in all processes. Returns the newest session of that id that is known. Returns undefined if only
   * Redis has the tokens, and cannot be read.
   */
  logOut(session: CookieSession): Promise<SessionRecord | undefined>
  /**
   * Logs out all sessions of a person, or of a login session at the provider. Needs an index.
   * @param issuedAt the `iat` of a logout token, in seconds since the epoch. A login whose ID token is not newer fails.
   * @returns the id of each session, and its newest record if the store or this process has it
   * @throws StoreUnavailableError if the sessions cannot be found now. No session has ended then.
   */
  logOutAll(of: SessionsOf, issuedAt?: number): Promise<readonly EndedSession[]>
  /**
   * Returns true at the first call with this token in any process, and false at every later call. Needs an index.
   * @throws StoreUnavailableError
   */
  claim(tokenId: string, lifetimeMs: number): Promise<boolean>
  /** Gives a claim a new lifetime. Never rejects. */
  keepClaim(tokenId: string, lifetimeMs: number): Promise<void>
  /** Undoes `claim`, because the token has had no effect. Never rejects. */
  release(tokenId: string): Promise<void>
  /** True if this process knows that the session was logged out. A logout is sent to all connected processes. */
  isLoggedOut(id: string): boolean
  /** Asks all processes to send no token request for `ms` milliseconds. */
  pause(ms: number): void
  /**
   * Returns the milliseconds until a token request may be sent.
   * @param isUrgent true for a code exchange and for the second request of dual mode. They come first after a pause.
   */
  pausedMs(isUrgent: boolean): number
  /** `away` means that a Redis is configured but cannot be used now. */
  status(): 'memory' | 'redis' | 'away'
  close(): Promise<void>
}

export interface EndedSession {
  readonly id: string
  readonly record: SessionRecord | undefined
}

/** The id and the revision of a session, and its key if it is kept in Redis. */
export type Version = Pick<SessionRecord, 'id' | 'rev' | 'key'>

/** The connection to the other processes. Without Redis there are none. */
export interface StoreLink {
  /** True if a lock may be taken. */
  isSettled(): boolean
  /** Returns a number that increases whenever the store may have lost a lock. */
  generation(): number
  isAway(): boolean
  /** Sends a message to all processes. Resolves with false if it was not sent. */
  publish(message: Message): Promise<boolean>
  close(): Promise<void>
}

/** The functions that the connection calls. */
export interface StoreEvents {
  /** Stores again what this process remembers, because the store may have lost its last writes. */
  restore(): Promise<void>
  receive(message: Message): void
}

export interface SessionStoreParts {
  readonly kind: 'memory' | 'redis'
  readonly scripts: SessionScripts<SessionRecord>
  /** The index of the sessions of each person. Undefined if nothing needs it. */
  readonly index?: Promise<SessionIndex> | undefined
  readonly connect: (events: StoreEvents) => StoreLink
  readonly clock: Clock
  readonly times: Pick<ScriptTimes, 'entryMs' | 'keepMs'>
  readonly log: Pick<Logger, 'error'>
}

interface Remembered {
  readonly record: SessionRecord
  /** The owner of the lock under which this process has got the session. */
  readonly owner: string
  /** False until the store has the record. */
  isStored: boolean
  /** The time on the monotonic clock at which this process has learned of it. The other interfaces have it, too. */
  readonly at: number
}

interface Logout {
  isStored: boolean
  readonly key: string | undefined
  readonly at: number
}

interface BrowserRevision {
  readonly rev: number
  readonly at: number
}

const MAX_RECORDS = 10_000
const MAX_BROWSERS = 50_000
const MAX_LOGOUTS = 200_000
const MAX_OWNERS = 10_000
// A failover loses the last writes. Sentinels ask an old master every 10 seconds for its role, so it may accept writes for
// longer than that after another master was promoted. These writes are lost.
const RECENT_MS = 60_000
// The time in which the other processes store a session again that Redis has lost.
const RESTORE_MS = 500
// The sessions that this process stores at once when it stores again what it remembers. All processes do this at the same
// time. If there are many, Redis needs longer for each of them, and a command must not exceed its time limit of a second.
const RESTORED_AT_FIRST = 10
const MAX_RESTORED_AT_ONCE = 100
const SHORT_RESTORE_MS = 100
// Sessions that a logout of a whole person ends at once.
const ENDED_AT_ONCE = 100
// If the process was stopped after it got a lock, Redis may have lost the lock meanwhile, and another process may have used
// the refresh token. No other process gets a lock within 2 seconds after a loss, so a younger lock is certain.
const FRESH_LOCK_MS = 1000
// After a pause, second requests of dual mode go before the first requests of other sessions. Otherwise the first requests
// would use up the quota, and nobody would get both tokens.
const SECOND_REQUESTS_FIRST_MS = 1000
// An owner that no lock has. Records that are stored again with it leave the lock of the entry alone.
const NO_OWNER = '-'

export function createSessionStore(parts: SessionStoreParts): SessionStore {
  const { kind, scripts, index, clock, times, log } = parts
  const { entryMs, keepMs } = times
  const { now } = clock
  const records = createExpiringMap<Remembered>(MAX_RECORDS, now)
  const browsers = createExpiringMap<BrowserRevision>(MAX_BROWSERS, now)
  const logouts = createExpiringMap<Logout>(MAX_LOGOUTS, now)
  const locks = new Map<string, Lock>()
  const owners = createExpiringMap<string>(MAX_OWNERS, now)
  const telling = new Set<string>()
  let pausedUntil = Number.NEGATIVE_INFINITY

  const link = parts.connect({ restore, receive })

  function remember(record: SessionRecord, isStored: boolean, owner = NO_OWNER): void {
    const known = records.get(record.id)
    if (known && known.record.rev >= record.rev) return
    const remembered = { record, owner, isStored: false, at: clock.monotonic() }
    records.set(record.id, remembered, entryMs)
    if (isStored) markStored(remembered)
  }

  function markStored(known: Remembered): void {
    known.isStored = true
    // Redis keeps this session until it ends, and it may be large. The process remembers it only for a failover.
    const { record } = known
    if (isKeptInRedis(record) && records.get(record.id) === known) records.set(record.id, known, RECENT_MS)
  }

  function rememberLogout(id: string, isStored: boolean, key?: string): void {
    records.delete(id)
    locks.delete(id)
    if (logouts.get(id) === undefined) logouts.set(id, { isStored, key, at: clock.monotonic() }, entryMs)
  }

  /** Remembers that a browser has this revision. Its record is needed only for requests that are under way. */
  function browserSent({ id, rev }: Version): void {
    if ((browsers.get(id)?.rev ?? 0) >= rev) return
    browsers.set(id, { rev, at: clock.monotonic() }, entryMs)
    const known = records.get(id)
    if (known?.isStored && known.record.rev <= rev) records.set(id, known, keepMs)
  }

  function newerHere({ id, rev }: Version): SessionRecord | undefined {
    const known = records.get(id)?.record
    return known && known.rev > rev ? known : undefined
  }

  /** Runs a script that no request waits for. Parallel requests of a session run it once. */
  function tell(id: string, script: () => Promise<void>): void {
    if (telling.has(id)) return
    telling.add(id)
    script()
      .catch(() => {})
      .finally(() => telling.delete(id))
  }

  /** Remembers what a script has answered. Returns the part of the answer that callers use. */
  function learn(id: string, found: Exclude<Position<SessionRecord>, { kind: 'same' | 'behind' | 'lost' }>) {
    if (found.kind === 'out') rememberLogout(id, true)
    if (found.kind !== 'newer') return found
    remember(found.record, true)
    return { kind: 'newer', record: found.record } as const
  }

  /**
   * Returns the owner for the next request for a lock. It stays the same until the lock has been used, because the reply to
   * an earlier request may have been lost. After that it changes: Redis may fall back to an earlier state, in which a lock
   * that this process has released looks as if it were still ours.
   */
  function ownerOf(id: string): string {
    const owner = owners.get(id) ?? randomUUID()
    owners.set(id, owner, LOCK_MS)
    return owner
  }

  async function restoreSession(id: string): Promise<void> {
    const known = records.get(id)
    if (known) {
      const { record } = known
      // If the first attempt to store this record has failed, the entry may still have the lock of this process.
      const savedBy = known.isStored || locks.has(id) ? NO_OWNER : known.owner
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      await scripts.save(id, { rev: record.rev, owner: savedBy, outcome, newLoss: randomUUID(), key: record.key })
      markStored(known)
    }
    const browser = browsers.get(id)
    if (browser) await scripts.seen(id, browser.rev, randomUUID())
    const lock = locks.get(id)
    if (lock) await scripts.hold(id, lock.rev, lock.owner, leftMs(lock.elapsedMs), randomUUID())
    const logout = logouts.get(id)
    if (logout) {
      await scripts.out(id, logout.key)
      logout.isStored = true
    }
    if (known) joinInBackground(known.record)
  }

  /**
   * Adds a session of a new login to the index. Returns false if the provider has ended its login in the meantime. The
   * session is already stored, so a logout finds it in the index, or the index knows of the logout.
   */
  async function join(session: SessionRecord, issuedAt: number | undefined): Promise<boolean> {
    if (!index) return true
    // Without Redis, the session is added when Redis is back, or at its next refresh.
    return (await index).join(session, issuedAt).catch(error => ignoreUnavailable(error) ?? true)
  }

  /** Adds a session to the index again, or renews its lifetime there. No request waits for it. */
  function joinInBackground(session: SessionRecord): void {
    if (index) join(session, undefined).catch(() => {})
  }

  async function restore(): Promise<void> {
    const isRecent = ({ at }: { readonly at: number }) => clock.monotonic() - at < RECENT_MS
    const ids = new Set(locks.keys())
    for (const [id, known] of records.entries()) if (!known.isStored || isRecent(known)) ids.add(id)
    for (const [id, logout] of logouts.entries()) if (!logout.isStored || isRecent(logout)) ids.add(id)
    for (const [id, browser] of browsers.entries()) if (isRecent(browser)) ids.add(id)
    const left = [...ids]
    let atOnce = RESTORED_AT_FIRST
    while (left.length > 0) {
      const elapsedMs = startStopwatch(clock)
      const results = await Promise.allSettled(left.splice(0, atOnce).map(restoreSession))
      if (results.some(result => result.status === 'rejected' && result.reason instanceof RedisUnavailableError)) return
      atOnce = elapsedMs() < SHORT_RESTORE_MS ? Math.min(2 * atOnce, MAX_RESTORED_AT_ONCE) : Math.ceil(atOnce / 2)
    }
  }

  function receive(message: Message): void {
    if (message.kind === 'pause') pauseHere(message.ms)
    else if (message.kind === 'out') rememberLogout(message.id, true)
    else restoreSession(message.id).catch(() => {})
  }

  function pauseHere(ms: number): void {
    pausedUntil = Math.max(pausedUntil, now() + Math.min(ms, MAX_PAUSE_MS))
  }

  /**
   * Answers a request for a lock although a browser has sent a newer session than `session`. The refresh token of `session`
   * must not be used, even if the process that has refreshed it could not store the newer session yet.
   */
  async function waitForNewer({ id, rev, key }: Version): Promise<LockAnswer> {
    const found = await scripts.look(id, rev, key)
    if (found.kind === 'same' || found.kind === 'behind' || found.kind === 'lost')
      return { kind: 'wait', loss: undefined }
    return learn(id, found)
  }

  /** Reports a loss to all processes. Returns true if they can store again what they remember. */
  async function report(id: string): Promise<boolean> {
    if (!(await link.publish({ kind: 'lost', id }))) return false
    await restoreSession(id).catch(() => {})
    return true
  }

  /** Logs a session out. Returns its newest record, if the store or this process has one. Never rejects. */
  async function end(id: string, key?: string): Promise<SessionRecord | undefined> {
    const known = records.get(id)?.record
    rememberLogout(id, false, key)
    void link.publish({ kind: 'out', id })
    try {
      const stored = await scripts.out(id, key)
      const logout = logouts.get(id)
      if (logout) logout.isStored = true
      return stored && stored.rev > (known?.rev ?? 0) ? stored.record : known
    } catch {
      // This process remembers the logout, and stores it when Redis is back.
      return known
    }
  }

  async function useIndex<T>(action: (index: SessionIndex) => Promise<T>): Promise<T> {
    if (!index) throw new TypeError('this store has no index of sessions')
    try {
      return await action(await index)
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw new StoreUnavailableError('store')
      throw error
    }
  }

  /** Looks once for the session to which a cookie refers. */
  async function findRecord({ id, key }: SessionReference): Promise<Read> {
    if (logouts.get(id)) return { kind: 'out' }
    const found = await scripts.look(id, 0, key).catch(ignoreUnavailable)
    if (!found) return { kind: 'away' }
    if (found.kind === 'out' || found.kind === 'ended') {
      if (found.kind === 'out') rememberLogout(id, true)
      return found
    }
    const stored = found.kind === 'newer' ? found.record : undefined
    const remembered = newerHere({ id, rev: stored?.rev ?? 0 })
    const record = remembered?.key === key ? remembered : stored
    return record ? { kind: 'live', record } : { kind: 'missing' }
  }

  return {
    browserSent,
    async look(session) {
      const { id } = session
      if (logouts.get(id)) return { kind: 'out' }
      const newer = newerHere(session)
      const newest = newer ?? session
      const found = await scripts.look(id, newest.rev).catch(ignoreUnavailable)
      if (found && found.kind !== 'same' && found.kind !== 'behind' && found.kind !== 'lost') {
        if (found.kind === 'newer' && found.isSeen) tell(id, () => scripts.unseen(id))
        return learn(id, found)
      }
      if (found?.kind === 'behind') joinInBackground(newest)
      if (newer && found?.kind === 'same' && found.isSeen) tell(id, () => scripts.unseen(id))
      const isNews = found?.kind === 'behind' || (found?.kind === 'same' && !found.isSeen)
      if (!newer && isNews) {
        const record = found.kind === 'same' && found.hasRecord ? undefined : session
        tell(id, () => scripts.seen(id, session.rev, randomUUID(), record))
      }
      return newer ? { kind: 'newer', record: newer } : { kind: 'current' }
    },
    async read(reference) {
      const found = await findRecord(reference)
      if (found.kind !== 'missing') return found
      if (!link.isSettled() || !(await report(reference.id))) return { kind: 'wait' }
      await wait(clock, RESTORE_MS)
      return findRecord(reference)
    },
    newerHere,
    async take(session, reportedLoss, ownOwner) {
      const { id, rev, key } = session
      if (logouts.get(id)) return { kind: 'out' }
      if (link.isAway()) return { kind: 'away' }
      if (!link.isSettled()) return { kind: 'wait', loss: undefined }
      const generation = link.generation()
      const owner = ownOwner ?? ownerOf(id)
      const elapsedMs = startStopwatch(clock)
      try {
        const browserRev = browsers.get(id)?.rev ?? 0
        if (browserRev > rev) return await waitForNewer(session)
        const taken = await scripts.take(id, { rev, owner, reported: reportedLoss, newLoss: randomUUID(), key })
        switch (taken.kind) {
          case 'mine': {
            if (link.generation() !== generation) return { kind: 'wait', loss: undefined }
            const lock = { id, key, rev, owner, elapsedMs, generation, suspectMs: taken.suspectMs }
            locks.set(id, lock)
            return { kind: 'mine', lock }
          }
          case 'held':
            return { kind: 'wait', loss: undefined }
          case 'unsettled': {
            // The store may not have this revision, and other processes need its record.
            if ('fields' in session) remember(session, true)
            const isReported = taken.loss === reportedLoss || (await report(id))
            return { kind: 'wait', loss: isReported ? taken.loss : undefined }
          }
          case 'pausing':
            return taken
          default:
            return learn(id, taken)
        }
      } catch (error) {
        ignoreUnavailable(error)
        return { kind: 'away' }
      }
    },
    async mayUse({ id, rev, owner, generation, elapsedMs }) {
      const isOurs = () => link.generation() === generation && !link.isAway() && (browsers.get(id)?.rev ?? 0) <= rev
      if (!isOurs() || elapsedMs() < FRESH_LOCK_MS) return isOurs()
      const isHeld = await scripts.hold(id, rev, owner, leftMs(elapsedMs), randomUUID()).catch(() => false)
      return isHeld && isOurs()
    },
    async save(lock, outcome) {
      const { id, owner, key } = lock
      const isTokens = outcome.kind === 'tokens'
      if (logouts.get(id)) {
        locks.delete(id)
        return { kind: 'out' }
      }
      // From now on the lock of the revision before is not needed, so it must not be stored again.
      locks.delete(id)
      owners.delete(id)
      if (isTokens) remember(outcome.record, false, owner)
      const rev = isTokens ? outcome.record.rev : lock.rev
      const elapsedMs = startStopwatch(clock)
      const { generation } = lock
      try {
        const saved = await scripts.save(id, { rev, owner, outcome, newLoss: randomUUID(), key })
        if (isTokens && outcome.record.rev > 1) joinInBackground(outcome.record)
        if (isTokens && outcome.record.rev === 1 && !(await join(outcome.record, outcome.issuedAt))) {
          await end(id, key)
          return { kind: 'out' }
        }
        if (saved.kind === 'saved') {
          const known = records.get(id)
          if (isTokens && known?.record.rev === rev) markStored(known)
          if (!isTokens && !saved.isOwner) return { kind: 'unknown' }
          if (!isTokens || !outcome.keepsLock || !saved.isOwner) return { kind: 'saved', lock: undefined }
          const next = { id, key, rev, owner, elapsedMs, generation, suspectMs: undefined }
          locks.set(id, next)
          return { kind: 'saved', lock: next }
        }
        if (saved.kind === 'stale' || saved.kind === 'lost') return { kind: 'unknown' }
        return learn(id, saved) as SaveAnswer
      } catch (error) {
        if (error instanceof StoredDataError) log.error({ event: 'stored_data_unreadable', err: error }, UNREADABLE)
        else ignoreUnavailable(error)
        return { kind: 'unknown' }
      }
    },
    async change({ id, owner, key }, record) {
      locks.delete(id)
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      const request = { rev: record.rev, owner, outcome, newLoss: randomUUID(), key }
      const saved = await scripts.save(id, request).catch(ignoreUnavailable)
      if (saved?.kind === 'saved') {
        remember(record, true)
        return { kind: 'saved', lock: undefined }
      }
      if (!saved || saved.kind === 'stale' || saved.kind === 'lost') return { kind: 'unknown' }
      return learn(id, saved) as SaveAnswer
    },
    async logOut(session) {
      const given = hasTokens(session) ? session : undefined
      const newest = await end(session.id, session.key)
      return newest && newest.rev > (given?.rev ?? 0) ? newest : given
    },
    async logOutAll(of, issuedAt) {
      const found = await useIndex(known => known.find(of, issuedAt))
      const ended: EndedSession[] = []
      for (let from = 0; from < found.length; from += ENDED_AT_ONCE) {
        const ids = found.slice(from, from + ENDED_AT_ONCE)
        ended.push(...(await Promise.all(ids.map(async id => ({ id, record: await end(id) })))))
        await useIndex(known => known.leave(of, ids)).catch(() => {})
      }
      return ended
    },
    claim: (tokenId, lifetimeMs) => useIndex(known => known.claim(tokenId, lifetimeMs)),
    async keepClaim(tokenId, lifetimeMs) {
      await useIndex(known => known.keepClaim(tokenId, lifetimeMs)).catch(() => {})
    },
    async release(tokenId) {
      await useIndex(known => known.release(tokenId)).catch(() => {})
    },
    isLoggedOut: id => logouts.get(id) !== undefined,
    pause(ms) {
      pauseHere(ms)
      void link.publish({ kind: 'pause', ms })
    },
    pausedMs(isUrgent) {
      const leftMs = pausedUntil - now() + (isUrgent ? 0 : SECOND_REQUESTS_FIRST_MS)
      // A remaining time above the longest pause means that the clock was set back. The pause is then ignored.
      return leftMs > MAX_PAUSE_MS + SECOND_REQUESTS_FIRST_MS ? 0 : Math.max(0, leftMs)
    },
    status: () => (kind === 'redis' && link.isAway() ? 'away' : kind),
    close: () => link.close()
  }
}

const UNREADABLE = 'a session in Redis cannot be read, because it was encrypted with another secret or has another type'

/** Rethrows every error except RedisUnavailableError. */
function ignoreUnavailable(error: unknown): undefined {
  if (!(error instanceof RedisUnavailableError)) throw error
  return undefined
}

/** Returns the rest of the time of a lock in milliseconds. */
function leftMs(elapsedMs: Lock['elapsedMs']): number {
  return Math.max(1, Math.round(LOCK_MS - elapsedMs()))
}
