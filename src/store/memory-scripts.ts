/**
 * The session store in the memory of one process. It is used without Redis, and the simulation uses it as its Redis. It
 * behaves exactly as the Lua scripts in `lua.ts`.
 */
import { createExpiringMap, type ExpiringMap } from '../support/expiring-map.js'
import {
  MAX_PAUSE_MS,
  type Outcome,
  type Position,
  type Saved,
  type SaveRequest,
  type ScriptTimes,
  type SessionScripts,
  type Taken
} from './scripts.js'

export interface Entry {
  rev: number
  state: 'live' | 'ended' | 'out'
  reason: string
  isSeen: boolean
  owner: string | undefined
  ownedUntil: number
  retryAt: number
  suspectSince: number | undefined
  loss: string | undefined
  settledAt: number | undefined
}

/** The data of the store. The simulation removes parts of it, as Redis does when it is emptied or full. */
export interface MemoryStorage<Stored> {
  readonly entries: ExpiringMap<Entry>
  readonly records: ExpiringMap<Stored>
}

// With sessions of 3 kB, the records of each group use at most 60 MB. An entry without a record uses about 300 bytes.
const MAX_RECORDS = 20_000
const MAX_ENTRIES = 200_000

/**
 * Entries of logins that have not succeeded have their own limit, so that invented codes cannot evict sessions. Records
 * that no browser has sent have their own limit, too.
 * @param now milliseconds since the epoch
 */
export function createMemoryStorage<Stored>(
  now: () => number,
  { loginMs, keepMs }: ScriptTimes
): MemoryStorage<Stored> {
  return {
    entries: createExpiringMap(MAX_ENTRIES, now, (_id, ttlMs) => (ttlMs <= loginMs ? 'logins' : 'sessions')),
    records: createExpiringMap(MAX_RECORDS, now, (_id, ttlMs) => (ttlMs <= keepMs ? 'seen' : 'needed'))
  }
}

/** @param now milliseconds since the epoch */
export function createMemoryScripts<Stored>(
  now: () => number,
  times: ScriptTimes,
  storage: MemoryStorage<Stored> = createMemoryStorage(now, times)
): SessionScripts<Stored> {
  const { entryMs, loginMs, keepMs, lockMs, settleMs } = times
  const { entries, records } = storage

  /** Returns the entry of a session, or a new one. The caller must `write` it. */
  function entryOf(id: string): Entry {
    return (
      entries.get(id) ?? {
        rev: -1,
        state: 'live',
        reason: '',
        isSeen: false,
        owner: undefined,
        ownedUntil: 0,
        retryAt: 0,
        suspectSince: undefined,
        loss: undefined,
        settledAt: undefined
      }
    )
  }

  /** Stores a changed entry and renews its lifetime. */
  function write(id: string, entry: Entry): void {
    entries.set(id, entry, entry.rev === 0 ? loginMs : entryMs)
  }

  function position(id: string, rev: number): Position<Stored> {
    const entry = entries.get(id)
    if (entry?.state === 'out') return { kind: 'out' }
    if (!entry || entry.rev < rev) return { kind: 'behind' }
    if (entry.state === 'ended') return { kind: 'ended', reason: entry.reason }
    const record = records.get(id)
    if (entry.rev === rev) return { kind: 'same', isSeen: entry.isSeen, hasRecord: record !== undefined }
    if (record !== undefined) return { kind: 'newer', rev: entry.rev, record, isSeen: entry.isSeen }
    return { kind: entry.isSeen ? 'stale' : 'lost' }
  }

  /** Raises the revision of an entry. Everything that belongs to the older revision goes, except the lock. */
  function raise(id: string, entry: Entry, rev: number): void {
    records.delete(id)
    Object.assign(entry, { rev, state: 'live', reason: '', isSeen: false, retryAt: 0, suspectSince: undefined })
  }

  function markLoss(entry: Entry, newLoss: string): void {
    if (settleMs === 0) return
    entry.loss = newLoss
    entry.settledAt = undefined
  }

  function release(entry: Entry): void {
    entry.owner = undefined
    entry.ownedUntil = 0
  }

  /** Releases the lock if `owner` has it. For outcomes that change nothing else. */
  function releaseOwn(entry: Entry, owner: string): void {
    if (entry.owner === owner) release(entry)
  }

  function saveTokens(
    id: string,
    { rev, owner, newLoss }: Omit<SaveRequest<Stored>, 'outcome'>,
    tokens: Tokens<Stored>
  ) {
    const entry = entryOf(id)
    const isOwner = entry.owner === owner
    const isNext = isOwner && entry.rev === rev - 1
    const record = records.get(id)
    // The first record of a revision wins. A missing record is restored, unless a browser has its revision.
    if (entry.rev === rev && entry.state === 'live' && (record !== undefined || entry.isSeen)) {
      releaseOwn(entry, owner)
      if (record === undefined) {
        // A browser has the session, but requests with its old cookie may still be under way.
        records.set(id, tokens.record, keepMs)
        return { kind: 'saved', isOwner } as const
      }
      return { kind: 'newer', rev, record, isSeen: entry.isSeen } as const
    }
    if (entry.rev > rev || (entry.rev === rev && entry.state === 'ended')) {
      releaseOwn(entry, owner)
      return position(id, rev) as Saved<Stored>
    }
    raise(id, entry, rev)
    if (!isNext) markLoss(entry, newLoss)
    if (tokens.pauseMs > 0) entry.retryAt = now() + tokens.pauseMs
    if (isOwner && tokens.keepsLock) entry.ownedUntil = now() + lockMs
    else if (isOwner) release(entry)
    records.set(id, tokens.record, entryMs)
    write(id, entry)
    return { kind: 'saved', isOwner } as const
  }

  return {
    async look(id, rev) {
      return position(id, rev)
    },
    async take(id, { rev, owner, reported, newLoss }): Promise<Taken<Stored>> {
      const found = position(id, rev)
      if (found.kind !== 'same' && found.kind !== 'behind' && found.kind !== 'lost') return found
      const isNewLogin = rev === 0 && !entries.get(id)
      const entry = entryOf(id)
      if (found.kind === 'behind') raise(id, entry, rev)
      if (found.kind !== 'same' && !isNewLogin && entry.loss === undefined) markLoss(entry, newLoss)
      if (entry.loss !== undefined) {
        const latest = now() + settleMs
        if (reported === entry.loss) entry.settledAt = Math.min(entry.settledAt ?? latest, latest)
        if (entry.settledAt === undefined || now() < entry.settledAt) {
          write(id, entry)
          return { kind: 'unsettled', loss: entry.loss }
        }
        entry.loss = undefined
        entry.settledAt = undefined
      }
      if (found.kind === 'lost') {
        entry.isSeen = true
        write(id, entry)
        return { kind: 'stale' }
      }
      if (entry.owner !== undefined && entry.owner !== owner && now() < entry.ownedUntil) {
        entry.ownedUntil = Math.min(entry.ownedUntil, now() + lockMs)
        return { kind: 'held' }
      }
      const pauseMs = entry.retryAt - now()
      if (pauseMs > 0 && pauseMs <= MAX_PAUSE_MS) return { kind: 'pausing', pauseMs }
      entry.owner = owner
      entry.ownedUntil = now() + lockMs
      write(id, entry)
      return { kind: 'mine', suspectMs: entry.suspectSince === undefined ? undefined : now() - entry.suspectSince }
    },
    async save(id, request): Promise<Saved<Stored>> {
      const { rev, owner, outcome, newLoss } = request
      const hadEntry = entries.get(id) !== undefined
      const entry = entryOf(id)
      if (entry.state === 'out') return { kind: 'out' }
      if (outcome.kind === 'tokens') return saveTokens(id, request, outcome)
      const isOwner = entry.owner === owner
      if (entry.rev > rev || (entry.rev === rev && entry.state === 'ended')) {
        releaseOwn(entry, owner)
        return position(id, rev) as Saved<Stored>
      }
      if (hadEntry && !isOwner) return { kind: 'saved', isOwner }
      if (entry.rev < rev) {
        raise(id, entry, rev)
        markLoss(entry, newLoss)
      }
      release(entry)
      if (outcome.kind === 'ended') {
        records.delete(id)
        Object.assign(entry, { state: 'ended', reason: outcome.reason })
      } else {
        entry.retryAt = now() + outcome.pauseMs
        entry.suspectSince = outcome.isDoubtful ? (entry.suspectSince ?? now()) : undefined
      }
      write(id, entry)
      return { kind: 'saved', isOwner }
    },
    async seen(id, rev, newLoss, given) {
      const found = position(id, rev)
      if (found.kind !== 'behind' && !(found.kind === 'same' && !found.isSeen)) return
      const entry = entryOf(id)
      const record = records.get(id)
      if (found.kind === 'behind') {
        raise(id, entry, rev)
        markLoss(entry, newLoss)
      }
      const kept = found.kind === 'behind' ? given : (record ?? given)
      if (kept !== undefined) records.set(id, kept, keepMs)
      entry.isSeen = kept !== undefined
      write(id, entry)
    },
    async unseen(id) {
      const entry = entries.get(id)
      const record = records.get(id)
      if (!entry?.isSeen || record === undefined) return
      entry.isSeen = false
      records.set(id, record, entryMs)
      write(id, entry)
    },
    async hold(id, rev, owner, leftMs, newLoss) {
      const found = position(id, rev)
      if (found.kind !== 'same' && found.kind !== 'behind') return false
      const entry = entryOf(id)
      const untilMs = now() + Math.min(leftMs, lockMs)
      if (entry.owner !== undefined && entry.owner !== owner && now() < entry.ownedUntil) {
        entry.ownedUntil = Math.max(entry.ownedUntil, untilMs)
        return false
      }
      const isUnbroken = found.kind === 'same' && entry.owner === owner && entry.loss === undefined
      if (found.kind === 'behind') {
        raise(id, entry, rev)
        markLoss(entry, newLoss)
      }
      entry.owner = owner
      entry.ownedUntil = untilMs
      write(id, entry)
      return isUnbroken
    },
    async out(id) {
      const record = records.get(id)
      records.delete(id)
      const entry = entryOf(id)
      release(entry)
      entry.state = 'out'
      write(id, entry)
      return record === undefined || entry.rev === -1 ? undefined : { rev: entry.rev, record }
    }
  }
}

type Tokens<Stored> = Extract<Outcome<Stored>, { readonly kind: 'tokens' }>
