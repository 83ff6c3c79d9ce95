/**
 * The memory of one process. It remembers the newest revision and record of the sessions that the process has seen. If Redis has
 * an older revision, Redis has lost data, and the record is stored again. While Redis is unavailable, requests use the remembered
 * record. If the memory is full, the oldest entries are dropped first.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.js'
import { createExpiringMap } from '../base/expiring-map.js'
import { isKeptInRedis, type SessionRecord } from '../cookie/session-record.js'
import type { Snapshot } from './cells.js'
import type { Revision, SessionKey } from './session-types.js'
import type { Cell, End, Entry, Known } from './transitions.js'
import { createOverListeners } from './when-over.js'

/** A cell as this process last saw it, without its record. */
type Seen = Snapshot<Cell<SessionRecord>>

interface KnownRevision {
  rev: number
  /** The time at which this process learned of the revision, on the monotonic clock. */
  at: number
  seen?: Seen
}

/** The end of a session for good: a logout, or an end by the access list. */
interface Logout {
  readonly session: SessionKey
  readonly end: End
  readonly at: number
  isSaved: boolean
}

/** A lease that this process has, or has requested. */
export interface LeaseUse {
  /** The owner name under which the lease was requested. */
  readonly owner: string
  /**
   * The token request in progress: the revision whose refresh token was sent, and the time at which it was sent, on the monotonic
   * clock.
   */
  sent?: { readonly rev: number; readonly at: number } | undefined
  /** True if, since the lease was requested, another process has reported that Redis has lost data of this session. */
  isLossReported: boolean
}

// Enough for 10,000 records. With two access tokens of 1 kB each, 10,000 records need 33 MB (measured with Node 20).
const MAX_RECORD_BYTES = 50_000_000
const MAX_REVISIONS = 50_000
const MAX_LOGOUTS = 200_000
const MAX_LOGINS = 10_000
// A failover loses the last writes. The old master may accept writes for more than 10 seconds after a new master was promoted. So
// every session and logout of which this process learned in the last minute is restored.
const RECENT_MS = 60_000
// A login reads and writes its cell several times within a minute, and never afterwards. So the cell of a login is remembered
// only for a minute.
const LOGIN_MS = 60_000

// The bytes that a record needs in addition to its fields, including its entries in the maps (measured with Node 20).
const RECORD_OVERHEAD_BYTES = 1500

/** Estimates the memory that a record needs, in bytes. */
function bytesOf({ fields }: SessionRecord): number {
  const lengths = Object.values(fields).map(value =>
    typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0)
  )
  return lengths.reduce((sum, length) => sum + length, RECORD_OVERHEAD_BYTES)
}

export type ProcessMemory = ReturnType<typeof createProcessMemory>

/**
 * @param lifetimeMs the lifetime of a cell
 * @param maxLifetimeMs the absolute lifetime of a session; infinite if it has no limit
 */
export function createProcessMemory(clock: Clock, lifetimeMs: number, maxLifetimeMs = Number.POSITIVE_INFINITY) {
  const { now } = clock
  const records = createRecords(now, lifetimeMs)
  const revisions = createExpiringMap<KnownRevision>(MAX_REVISIONS, now)
  const logouts = createExpiringMap<Logout>(MAX_LOGOUTS, now)
  // Anybody can begin a login by sending a made-up code, so logins take no room from sessions.
  const logins = createExpiringMap<Seen>(MAX_LOGINS, now)
  const uses = createLeaseUses()
  const listeners = createOverListeners(clock, maxLifetimeMs)

  /** Remembers that a session has this revision. Also remembers the record of the revision, if the caller has it. */
  function remember(id: string, rev: number, record?: SessionRecord): void {
    // A copy of the cookie must not make a logged-out session live again.
    if (logouts.get(id)) return
    const known = revisions.get(id)
    if (rev > (known?.rev ?? 0)) {
      const seen = known?.seen ?? logins.get(id)
      revisions.set(id, { rev, at: clock.monotonic(), ...(seen && { seen }) }, lifetimeMs)
      logins.delete(id)
    }
    if (record) records.remember(record)
  }

  /** Returns the highest revision that this process has learned of, and the newest record that it has. */
  function known(id: string): Known<SessionRecord> {
    const record = records.recordOf(id)
    const recordRev = record?.rev ?? 0
    return { rev: Math.max(revisions.get(id)?.rev ?? 0, recordRev), record, recordRev }
  }

  /** Returns the record that was not stored yet, if there is one. Its refresh token will no longer be used. */
  function logOut(session: SessionKey, isSaved: boolean, end: End): SessionRecord | undefined {
    const { id } = session
    const unsaved = records.unsaved.get(id)
    records.forget(id)
    const known = logouts.get(id)
    if (known) known.isSaved ||= isSaved
    else logouts.set(id, { session, end, at: clock.monotonic(), isSaved }, lifetimeMs)
    listeners.over(id)
    return unsaved
  }

  function seen(id: string): Seen | undefined {
    return revisions.get(id)?.seen ?? logins.get(id)
  }

  /** True if a cell ends its session. An end before the newest known revision does not. */
  function ends(id: string, entry: Entry | undefined): boolean {
    return entry?.over !== undefined && (entry.isFinal === true || entry.rev >= known(id).rev)
  }

  return {
    remember,
    recordOf: records.recordOf,
    known,
    /** Remembers the revision of a cookie, and its record if it contains one. */
    note(session: Revision | SessionRecord): void {
      remember(session.id, session.rev, 'fields' in session ? session : undefined)
    },
    /**
     * Returns the session at its newest known revision. Returns undefined if this process does not have the record of that
     * revision.
     */
    newest(id: string): SessionRecord | undefined {
      const { rev, record, recordRev } = known(id)
      return recordRev === rev ? record : undefined
    },
    /** Returns the cell as this process last saw it. */
    seen,
    /** Remembers a cell that was read or written. */
    see(id: string, { version, content, isUnreadable = false }: Snapshot<Cell<SessionRecord>>): void {
      const revision = revisions.get(id)
      const seen = { version, content: content && { entry: content.entry }, isUnreadable }
      if (revision) revision.seen = seen
      else logins.set(id, seen, LOGIN_MS)
      if (ends(id, content?.entry)) listeners.over(id)
    },
    /** Calls `listener` once when this process learns that the session is over. Returns a function that removes the listener. */
    whenOver(session: Pick<SessionRecord, 'id' | 'loggedInAt'>, listener: () => void): () => void {
      const { id } = session
      const remove = listeners.add(session, listener)
      if (logouts.get(id) || ends(id, seen(id)?.content?.entry)) queueMicrotask(() => listeners.over(id))
      return remove
    },
    close: listeners.close,
    /** Remembers a result that is not stored yet. */
    addUnsaved(record: SessionRecord): void {
      remember(record.id, record.rev, record)
      records.unsaved.set(record.id, record)
    },
    /** Notes that the store has this result, or a newer result. */
    markSaved({ id, rev }: Pick<SessionRecord, 'id' | 'rev'>): void {
      const { unsaved } = records
      if ((unsaved.get(id)?.rev ?? Number.POSITIVE_INFINITY) <= rev) unsaved.delete(id)
    },
    isUnsaved: (id: string) => records.unsaved.has(id),
    /** Forgets a record that must not be used, because the store has another record of its revision. */
    drop(record: SessionRecord): void {
      if (records.recordOf(record.id) === record) records.forget(record.id)
    },
    logOut,
    logoutOf: (id: string): Readonly<Logout> | undefined => logouts.get(id),
    ...uses,
    /**
     * Returns the ids of the sessions that the store may have lost, the most urgent ones first. If Redis loses data, it loses the
     * latest writes, so the sessions of which this process learned last are the most urgent. The last ones are those for which
     * something runs, because this process may have missed the message of their end.
     */
    possiblyLost(): Set<string> {
      const unsavedLogouts = [...logouts.entries()].filter(([, { isSaved }]) => !isSaved).map(([id]) => id)
      const since = clock.monotonic() - RECENT_MS
      const others = [...newestFirst(logouts.entries(), since), ...newestFirst(revisions.entries(), since)]
      return new Set([
        ...records.unsaved.keys(),
        ...uses.inProgress(),
        ...unsavedLogouts,
        ...others,
        ...listeners.ids()
      ])
    },
    /** The number of sessions that this process remembers. */
    size: () => revisions.size
  }
}

/** Remembers the newest record of each session. `unsaved` has the records that are not stored yet. */
function createRecords(now: () => number, lifetimeMs: number) {
  const records = createExpiringMap<SessionRecord>(MAX_RECORD_BYTES, now, bytesOf)
  const unsaved = new Map<string, SessionRecord>()

  function recordOf(id: string): SessionRecord | undefined {
    return unsaved.get(id) ?? records.get(id)
  }

  return {
    unsaved,
    recordOf,
    remember(record: SessionRecord): void {
      const newest = recordOf(record.id)
      const newestRev = newest?.rev ?? 0
      if (newestRev > record.rev) return
      // Each request whose cookie was decrypted anew has an equal record. The old one stays, because V8 frees objects that have
      // lived for long much later.
      if (newest === record || (newestRev === record.rev && isDeepStrictEqual(record, newest))) return
      // A session that is kept in Redis may be large, and its record is needed only to restore the session if Redis loses its last
      // writes. So remember the record only for a minute.
      records.set(record.id, record, isKeptInRedis(record) ? RECENT_MS : lifetimeMs)
    },
    forget(id: string): void {
      records.delete(id)
      unsaved.delete(id)
    }
  }
}

type Entries = Iterable<readonly [id: string, entry: { readonly at: number }]>

/** Returns the ids of the entries of which this process learned after `since`, the latest first. */
function newestFirst(entries: Entries, since: number): readonly string[] {
  return [...entries].flatMap(([id, { at }]) => (at > since ? [id] : [])).reverse()
}

/** Notes which leases this process has, or has requested. */
function createLeaseUses() {
  const leases = new Map<string, Set<LeaseUse>>()

  return {
    usesOf: (id: string): readonly LeaseUse[] => [...(leases.get(id) ?? [])],
    /** Notes that a lease is being requested under this owner name. Call `end` when the lease is released or not granted. */
    begin(id: string, owner: string): LeaseUse {
      const use: LeaseUse = { owner, isLossReported: false }
      leases.set(id, (leases.get(id) ?? new Set()).add(use))
      return use
    },
    end(id: string, use: LeaseUse): void {
      const uses = leases.get(id)
      uses?.delete(use)
      if (uses?.size === 0) leases.delete(id)
    },
    /** Returns the ids of the sessions with a token request in progress. */
    inProgress: (): readonly string[] =>
      [...leases].filter(([, uses]) => [...uses].some(({ sent }) => sent)).map(([id]) => id)
  }
}
