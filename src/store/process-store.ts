/**
 * The session store as one process sees it. It joins the scripts of the store with what the process remembers, with the
 * messages to the other processes, and with the index of the sessions of each person.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { hasTokens, type SessionRecord, type SessionReference } from '../session/record.js'
import { type Clock, startStopwatch, wait } from '../support/clock.js'
import type { Message } from './messages.js'
import { createPersonSessions } from './person-sessions.js'
import { createProcessMemory, leftMs } from './process-memory.js'
import { ignoreUnavailable, StoredDataError } from './redis-errors.js'
import { createRestoration } from './restoration.js'
import { MAX_PAUSE_MS, type Position, type ScriptTimes, type SessionScripts } from './scripts.js'
import type { SessionIndex } from './session-index.js'
import type { LockAnswer, Read, SaveAnswer, SessionStore, Version } from './session-store.js'

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

export interface ProcessStoreParts {
  readonly kind: 'memory' | 'redis'
  readonly scripts: SessionScripts<SessionRecord>
  /** The index of the sessions of each person. Undefined if nothing needs it. */
  readonly index?: SessionIndex | undefined
  readonly connect: (events: StoreEvents) => StoreLink
  readonly clock: Clock
  readonly times: Pick<ScriptTimes, 'entryMs' | 'keepMs'>
  readonly log: Pick<Logger, 'error'>
}

// The time in which the other processes store a session again that Redis has lost.
const RESTORE_MS = 500
// If the process was stopped after it got a lock, Redis may have lost the lock meanwhile, and another process may have used
// the refresh token. No other process gets a lock within 2 seconds after a loss, so a younger lock is certain.
const FRESH_LOCK_MS = 1000
// After a pause, second requests of dual mode go before the first requests of other sessions. Otherwise the first requests
// would use up the quota, and nobody would get both tokens.
const SECOND_REQUESTS_FIRST_MS = 1000
const UNREADABLE = 'a session in Redis cannot be read, because it was encrypted with another secret or has another type'

/** @example const store = createProcessStore({ kind: 'memory', scripts, connect: () => NO_LINK, clock, times, log }) */
export function createProcessStore(parts: ProcessStoreParts): SessionStore {
  const { kind, scripts, clock, times, log } = parts
  const { now } = clock
  const memory = createProcessMemory(clock, times)
  const persons = createPersonSessions(parts.index, end)
  const { restoreSession, restoreAll } = createRestoration({ memory, scripts, persons, clock })
  const telling = new Set<string>()
  let pausedUntil = Number.NEGATIVE_INFINITY

  const link = parts.connect({ restore: restoreAll, receive })

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
    if (found.kind === 'out') memory.logOut(id, true)
    if (found.kind !== 'newer') return found
    memory.remember(found.record, true)
    return { kind: 'newer', record: found.record } as const
  }

  function receive(message: Message): void {
    if (message.kind === 'pause') pauseHere(message.ms)
    else if (message.kind === 'out') memory.logOut(message.id, true)
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
    const known = memory.newest(id)?.record
    memory.logOut(id, false, key)
    void link.publish({ kind: 'out', id })
    try {
      const stored = await scripts.out(id, key)
      memory.markLogoutStored(id)
      return stored && stored.rev > (known?.rev ?? 0) ? stored.record : known
    } catch {
      // This process remembers the logout, and stores it when Redis is back.
      return known
    }
  }

  /** Looks once for the session to which a cookie refers. */
  async function findRecord({ id, key }: SessionReference): Promise<Read> {
    if (memory.logoutOf(id)) return { kind: 'out' }
    const found = await scripts.look(id, 0, key).catch(ignoreUnavailable)
    if (!found) return { kind: 'away' }
    if (found.kind === 'out' || found.kind === 'ended') {
      if (found.kind === 'out') memory.logOut(id, true)
      return found
    }
    const stored = found.kind === 'newer' ? found.record : undefined
    const remembered = memory.newerThan({ id, rev: stored?.rev ?? 0 })
    const record = remembered?.key === key ? remembered : stored
    return record ? { kind: 'live', record } : { kind: 'missing' }
  }

  return {
    browserSent: memory.browserSent,
    async look(session) {
      const { id } = session
      if (memory.logoutOf(id)) return { kind: 'out' }
      const newer = memory.newerThan(session)
      const newest = newer ?? session
      const found = await scripts.look(id, newest.rev).catch(ignoreUnavailable)
      if (found && found.kind !== 'same' && found.kind !== 'behind' && found.kind !== 'lost') {
        if (found.kind === 'newer' && found.isSeen) tell(id, () => scripts.unseen(id))
        return learn(id, found)
      }
      if (found?.kind === 'behind') persons.joinInBackground(newest)
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
    newerHere: memory.newerThan,
    async take(session, reportedLoss, ownOwner) {
      const { id, rev, key } = session
      if (memory.logoutOf(id)) return { kind: 'out' }
      if (link.isAway()) return { kind: 'away' }
      if (!link.isSettled()) return { kind: 'wait', loss: undefined }
      const generation = link.generation()
      const owner = ownOwner ?? memory.ownerOf(id)
      const elapsedMs = startStopwatch(clock)
      try {
        const browserRev = memory.browserRev(id)
        if (browserRev > rev) return await waitForNewer(session)
        const taken = await scripts.take(id, { rev, owner, reported: reportedLoss, newLoss: randomUUID(), key })
        switch (taken.kind) {
          case 'mine': {
            if (link.generation() !== generation) return { kind: 'wait', loss: undefined }
            const lock = { id, key, rev, owner, elapsedMs, generation, suspectMs: taken.suspectMs }
            memory.locks.set(id, lock)
            return { kind: 'mine', lock }
          }
          case 'held':
            return { kind: 'wait', loss: undefined }
          case 'unsettled': {
            // The store may not have this revision, and other processes need its record.
            if ('fields' in session) memory.remember(session, true)
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
    async mayUse(lock) {
      const { id, rev, owner, generation } = lock
      const isOurs = () => link.generation() === generation && !link.isAway() && memory.browserRev(id) <= rev
      if (!isOurs() || lock.elapsedMs() < FRESH_LOCK_MS) return isOurs()
      const isHeld = await scripts.hold(id, rev, owner, leftMs(lock), randomUUID()).catch(() => false)
      return isHeld && isOurs()
    },
    async save(lock, outcome) {
      const { id, owner, key } = lock
      const isTokens = outcome.kind === 'tokens'
      memory.forgetLock(lock)
      if (memory.logoutOf(id)) return { kind: 'out' }
      if (isTokens) memory.remember(outcome.record, false, owner)
      const rev = isTokens ? outcome.record.rev : lock.rev
      const elapsedMs = startStopwatch(clock)
      const { generation } = lock
      try {
        const saved = await scripts.save(id, { rev, owner, outcome, newLoss: randomUUID(), key })
        if (isTokens && outcome.record.rev > 1) persons.joinInBackground(outcome.record)
        if (isTokens && outcome.record.rev === 1 && !(await persons.join(outcome.record, outcome.issuedAt))) {
          await end(id, key)
          return { kind: 'out' }
        }
        if (saved.kind === 'saved') {
          if (isTokens) memory.markStored(outcome.record)
          if (!isTokens && !saved.isOwner) return { kind: 'unknown' }
          if (!isTokens || !outcome.keepsLock || !saved.isOwner) return { kind: 'saved', lock: undefined }
          const next = { id, key, rev, owner, elapsedMs, generation, suspectMs: undefined }
          memory.locks.set(id, next)
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
    async change(lock, record) {
      const { id, owner, key } = lock
      memory.forgetLock(lock)
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      const request = { rev: record.rev, owner, outcome, newLoss: randomUUID(), key }
      const saved = await scripts.save(id, request).catch(ignoreUnavailable)
      if (saved?.kind === 'saved') {
        memory.remember(record, true)
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
    logOutAll: persons.logOutAll,
    claim: persons.claim,
    keepClaim: persons.keepClaim,
    release: persons.release,
    isLoggedOut: id => memory.logoutOf(id) !== undefined,
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
