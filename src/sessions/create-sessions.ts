/** Creates the sessions of one process from the cells that it shares with other processes. */
import { isKeptInRedis, type SessionRecord, withCustomFields } from '../cookie/record.js'
import { requireStorable } from '../cookie/session-cookie.js'
import { ignoreUnavailable, type Message, StoreUnavailableError } from './cells.js'
import { createProcessMemory, type ProcessMemory } from './memory.js'
import { createPauses } from './pause.js'
import { createRestore, createRestores } from './restores.js'
import type { Current, Result, Revision, SessionKey, Sessions } from './session-types.js'
import { createSessionStore, type StoreDependencies } from './store.js'
import * as rules from './transitions.js'
import { createUnderLease, patience, type UnderLeaseDependencies } from './under-lease.js'

interface SessionsDependencies
  extends Omit<StoreDependencies, 'memory'>,
    Pick<UnderLeaseDependencies, 'hostSlots' | 'connectedAt'> {
  /** Sends a message to all processes. Never rejects. */
  readonly publish: (message: Message) => Promise<void>
  /** The lifetime of a cell, in milliseconds. */
  readonly lifetimeMs: number
  /** The absolute lifetime of a session, in milliseconds. By default, it has no limit. */
  readonly maxLifetimeMs?: number | undefined
  /** The memory of this process, for the simulation. */
  readonly memory?: ProcessMemory
}

/** The sessions, and what the connection to Redis, the lists of users and the shutdown of this process need in addition. */
export type ProcessSessions = ReturnType<typeof createSessions>

/** @example const sessions = createSessions({ cells, clock, me, recoveryMs: 0, connectedAt, hostSlots, publish, revoke, lifetimeMs }) */
export function createSessions(dependencies: SessionsDependencies) {
  const { cells, clock, publish, lifetimeMs, maxLifetimeMs } = dependencies
  const { memory = createProcessMemory(clock, lifetimeMs, maxLifetimeMs) } = dependencies
  const store = createSessionStore({ ...dependencies, memory })
  const restores = createRestores({
    clock,
    restore: createRestore({ ...dependencies, store, memory }),
    possiblyLost: memory.possiblyLost
  })
  const pauses = createPauses(clock)
  const underLease = createUnderLease({ ...dependencies, store, memory, restores, pauses, end })

  async function current(session: Revision): Promise<Current> {
    memory.note(session)
    const known = store.known(session.id)
    if (known.kind === 'over') return known
    const found = await store.find(session)
    return found.kind === 'over' ? { kind: 'over', end: found.end } : store.known(session.id)
  }

  async function end(session: SessionKey | Revision, reason = rules.LOGGED_OUT) {
    const { id } = session
    if ('rev' in session) memory.note(session)
    const { rev, record } = memory.known(id)
    memory.remember(id, rev)
    memory.logOut(session, false, reason)
    try {
      const options = { isWhole: true, replacesUnreadable: true }
      const stored = await store.run(session, cell => rules.logOut(cell, rev, reason), options)
      memory.logOut(session, true, reason)
      return { record: stored && stored.rev > (record?.rev ?? 0) ? stored.record : record, isStored: true }
    } catch (error) {
      ignoreUnavailable(error)
      restores.soon(id)
      await publish(store.endOf(id, rev, reason))
      return { record, isStored: false }
    }
  }

  /** Changes the fields of a session that is kept in Redis. Each change is a revision. */
  async function changeInRedis(record: SessionRecord, stored: object): Promise<SessionRecord | undefined> {
    requireStorable(changed(record, stored, cells.now()))
    let newest = record
    for (const mayWait = patience(clock); mayWait(); ) {
      let next: SessionRecord | undefined
      const settled = await underLease(newest, { mayWait }, async session => {
        next = { ...changed(session, stored, cells.now()), rev: session.rev + 1 }
        return { kind: 'change', record: next }
      })
      if (settled.kind === 'over') return undefined
      if (next && settled.record === next) return next
      newest = settled.record ?? newest
    }
    throw new StoreUnavailableError('conflict')
  }

  /** Changes the fields of a session that is kept in its cookie. */
  async function changeInCookie(record: SessionRecord, stored: object): Promise<SessionRecord | undefined> {
    const newest = await current(record).catch(error => ignoreUnavailable(error) ?? store.known(record.id))
    if (newest.kind === 'over') return undefined
    return changed(newest.record ?? record, stored, cells.now())
  }

  /** Handles a message from any process, including this process. */
  function receive(message: Message): void {
    if ('ms' in message) {
      pauses[message.kind === 'pause' ? 'refresh' : 'login'].begin(message.ms)
      return
    }
    const { id, rev, from } = message
    if (message.kind === 'loggedOut') {
      store.noteEnd({ id }, message.end)
    } else {
      // This process may have reported the loss itself, while a change was being stored. Its own token request needs its lease then,
      // too.
      const uses = memory.usesOf(id)
      for (const use of uses) use.isLossReported = true
      const knowsMore = from !== store.owner && rev > 0 && memory.known(id).rev >= rev
      if (uses.some(({ sent }) => sent) || memory.logoutOf(id) || knowsMore) restores.now(id)
    }
  }

  const sessions: Sessions = {
    now: cells.now,
    current,
    known: store.known,
    whenOver: memory.whenOver,
    underLease: (session, request, work) =>
      underLease(session, { ...request, mayWait: request.mayWait ? patience(clock) : never }, work),
    recover: session => underLease(session, { mayWait: patience(clock) }, nothing),
    change: (record, stored) =>
      isKeptInRedis(record) ? changeInRedis(record, stored) : changeInCookie(record, stored),
    end,
    pause(of, ms) {
      pauses[of].begin(ms)
      void publish({ kind: of === 'login' ? 'loginPause' : 'pause', ms })
    },
    pausedMs: of => pauses[of].leftMs(of === 'login')
  }
  return {
    ...sessions,
    newest: memory.newest,
    read: store.read,
    receive,
    /**
     * Stores again what Redis may have lost, and what could not be stored. Call this function after each new connection, and when
     * the secrets have changed, because cells may be readable now. Never rejects.
     */
    restoreAll: restores.all,
    /** Resolves when every result and logout is stored, except those whose cells cannot be decrypted. */
    saved: restores.ended,
    cached: memory.size,
    /** Stops all attempts to restore sessions. */
    close(): void {
      restores.close()
      memory.close()
    }
  }
}

function never(): false {
  return false
}

/** No lease is granted for a session whose record is lost, so this work is never done. */
async function nothing(): Promise<Result> {
  return { kind: 'failure', pauseMs: 0 }
}

function changed(record: SessionRecord, stored: object, now: number): SessionRecord {
  return { ...record, changedAt: now, fields: withCustomFields(record.fields, stored) }
}
