/** Stores again what this process remembers, because Redis was away, has lost data, or was replaced by another Redis. */
import { randomUUID } from 'node:crypto'
import type { SessionRecord } from '../session/record.js'
import { type Clock, startStopwatch } from '../support/clock.js'
import type { PersonSessions } from './person-sessions.js'
import { leftMs, NO_OWNER, type ProcessMemory } from './process-memory.js'
import { RedisUnavailableError } from './redis-errors.js'
import type { SessionScripts } from './scripts.js'

// The sessions that this process stores at once. All processes store theirs at the same time, which slows Redis down, and
// each command must end within a second.
const RESTORED_AT_FIRST = 10
const MAX_RESTORED_AT_ONCE = 100
const SHORT_RESTORE_MS = 100

export interface RestorationParts {
  readonly memory: ProcessMemory
  readonly scripts: SessionScripts<SessionRecord>
  readonly persons: Pick<PersonSessions, 'joinInBackground'>
  readonly clock: Clock
}

/** @example await createRestoration({ memory, scripts, persons, clock }).restoreAll() */
export function createRestoration({ memory, scripts, persons, clock }: RestorationParts) {
  /**
   * Stores again what this process remembers of one session.
   * @throws RedisUnavailableError
   */
  async function restoreSession(id: string): Promise<void> {
    const known = memory.newest(id)
    if (known) {
      const { record } = known
      // If the first attempt to store this record has failed, the entry may still have the lock of this process.
      const owner = known.isStored || memory.locks.has(id) ? NO_OWNER : known.owner
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      await scripts.save(id, { rev: record.rev, owner, outcome, newLoss: randomUUID(), key: record.key })
      memory.markStored(record)
    }
    const browserRev = memory.browserRev(id)
    if (browserRev > 0) await scripts.seen(id, browserRev, randomUUID())
    const lock = memory.locks.get(id)
    if (lock) await scripts.hold(id, lock.rev, lock.owner, leftMs(lock), randomUUID())
    const logout = memory.logoutOf(id)
    if (logout) {
      await scripts.out(id, logout.key)
      memory.markLogoutStored(id)
    }
    if (known) persons.joinInBackground(known.record)
  }

  /** Stores again what Redis may have lost. Ends early if Redis is away again. */
  async function restoreAll(): Promise<void> {
    const left = [...memory.possiblyLost()]
    let atOnce = RESTORED_AT_FIRST
    while (left.length > 0) {
      const elapsedMs = startStopwatch(clock)
      const results = await Promise.allSettled(left.splice(0, atOnce).map(restoreSession))
      if (results.some(result => result.status === 'rejected' && result.reason instanceof RedisUnavailableError)) return
      atOnce = elapsedMs() < SHORT_RESTORE_MS ? Math.min(2 * atOnce, MAX_RESTORED_AT_ONCE) : Math.ceil(atOnce / 2)
    }
  }

  return { restoreSession, restoreAll }
}
