/**
 * What one process remembers of the sessions: the newest sessions that it has stored or read, the newest revisions that
 * browsers have sent, its locks, and all logouts. While Redis is away, the process answers from this memory.
 */
import { randomUUID } from 'node:crypto'
import { isKeptInRedis, type SessionRecord } from '../session/record.js'
import type { Clock } from '../support/clock.js'
import { createExpiringMap } from '../support/expiring-map.js'
import { LOCK_MS, type ScriptTimes } from './scripts.js'
import type { Lock, Version } from './session-store.js'

interface Remembered {
  readonly record: SessionRecord
  /** The owner of the lock under which this process has got the session. */
  readonly owner: string
  /** False until the store has the record. */
  isStored: boolean
  /** The time on the monotonic clock at which this process has learned of it. */
  readonly at: number
}

interface Logout {
  isStored: boolean
  readonly key: string | undefined
  /** See `Remembered.at`. */
  readonly at: number
}

interface BrowserRevision {
  readonly rev: number
  /** See `Remembered.at`. */
  readonly at: number
}

const MAX_RECORDS = 10_000
const MAX_BROWSERS = 50_000
const MAX_LOGOUTS = 200_000
const MAX_OWNERS = 10_000
// A failover loses the last writes. Sentinels ask an old master every 10 seconds for its role, so it may accept writes for
// longer than that after another master was promoted. These writes are lost.
const RECENT_MS = 60_000

/** An owner that no lock has. A record that is stored again with it does not release the lock of the entry. */
export const NO_OWNER = '-'

export type ProcessMemory = ReturnType<typeof createProcessMemory>

/**
 * @example const memory = createProcessMemory(clock, { entryMs: 86_400_000, keepMs: 60_000 })
 * memory.remember(record, true)
 * memory.newest(record.id)?.record
 */
export function createProcessMemory(clock: Clock, { entryMs, keepMs }: Pick<ScriptTimes, 'entryMs' | 'keepMs'>) {
  const { now } = clock
  const records = createExpiringMap<Remembered>(MAX_RECORDS, now)
  const browsers = createExpiringMap<BrowserRevision>(MAX_BROWSERS, now)
  const logouts = createExpiringMap<Logout>(MAX_LOGOUTS, now)
  const owners = createExpiringMap<string>(MAX_OWNERS, now)
  /** The locks of this process, by the id of the session. */
  const locks = new Map<string, Lock>()

  function newest(id: string): Readonly<Remembered> | undefined {
    return records.get(id)
  }

  /** Returns the newest session with this id, if it is newer than the given one. */
  function newerThan({ id, rev }: Version): SessionRecord | undefined {
    const record = records.get(id)?.record
    return record && record.rev > rev ? record : undefined
  }

  /**
   * Remembers a session, unless a newer one is known.
   * @param isStored true if the store has it
   * @param owner the owner of the lock under which this process has got the session
   */
  function remember(record: SessionRecord, isStored: boolean, owner = NO_OWNER): void {
    const { id, rev } = record
    if ((records.get(id)?.record.rev ?? 0) >= rev) return
    records.set(id, { record, owner, isStored: false, at: clock.monotonic() }, entryMs)
    if (isStored) markStored(record)
  }

  /** Notes that the store has this revision of the session. */
  function markStored({ id, rev }: Version): void {
    const known = records.get(id)
    if (known?.record.rev !== rev) return
    known.isStored = true
    // Redis keeps this session until it ends, and it may be large. The process remembers it only for a failover.
    if (isKeptInRedis(known.record)) records.set(id, known, RECENT_MS)
  }

  /** Remembers that a browser has this revision. Its record is needed only for requests that are under way. */
  function browserSent({ id, rev }: Version): void {
    if (browserRev(id) >= rev) return
    browsers.set(id, { rev, at: clock.monotonic() }, entryMs)
    const known = records.get(id)
    if (known?.isStored && known.record.rev <= rev) records.set(id, known, keepMs)
  }

  /** Returns the newest revision that a browser has sent, or 0. */
  function browserRev(id: string): number {
    return browsers.get(id)?.rev ?? 0
  }

  /** @param isStored true if the store knows of the logout */
  function logOut(id: string, isStored: boolean, key?: string): void {
    records.delete(id)
    locks.delete(id)
    if (!logoutOf(id)) logouts.set(id, { isStored, key, at: clock.monotonic() }, entryMs)
  }

  function logoutOf(id: string): Readonly<Logout> | undefined {
    return logouts.get(id)
  }

  function markLogoutStored(id: string): void {
    const logout = logouts.get(id)
    if (logout) logout.isStored = true
  }

  /**
   * Returns the owner for the next request for a lock. It stays the same until the lock is used, because the reply to an
   * earlier request may have been lost. Then it changes, because Redis may fall back to an earlier state, in which this
   * process still has a lock that it has already released.
   */
  function ownerOf(id: string): string {
    const owner = owners.get(id) ?? randomUUID()
    owners.set(id, owner, LOCK_MS)
    return owner
  }

  /** Forgets a lock that is given back. It must not be stored again, and the next lock has another owner. */
  function forgetLock({ id, owner }: Pick<Lock, 'id' | 'owner'>): void {
    if (locks.get(id)?.owner === owner) locks.delete(id)
    if (owners.get(id) === owner) owners.delete(id)
  }

  /** Returns the ids of the sessions to store again, because the store may have lost what this process remembers of them. */
  function possiblyLost(): readonly string[] {
    const isRecent = ({ at }: { readonly at: number }) => clock.monotonic() - at < RECENT_MS
    const ids = new Set(locks.keys())
    for (const [id, known] of records.entries()) if (!known.isStored || isRecent(known)) ids.add(id)
    for (const [id, logout] of logouts.entries()) if (!logout.isStored || isRecent(logout)) ids.add(id)
    for (const [id, browser] of browsers.entries()) if (isRecent(browser)) ids.add(id)
    return [...ids]
  }

  return {
    locks,
    newest,
    newerThan,
    remember,
    markStored,
    browserSent,
    browserRev,
    logOut,
    logoutOf,
    markLogoutStored,
    ownerOf,
    forgetLock,
    possiblyLost
  }
}

/** Returns the rest of the time of a lock in milliseconds. */
export function leftMs({ elapsedMs }: Pick<Lock, 'elapsedMs'>): number {
  return Math.max(1, Math.round(LOCK_MS - elapsedMs()))
}
