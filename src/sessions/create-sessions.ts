/** Creates the sessions of one process from the cells that it shares with other processes. */

import { requireStorable } from '../cookie/session-cookie.js'
import { isKeptInRedis, type SessionRecord, withCustomFields } from '../cookie/session-record.js'
import { ignoreUnavailable, type Message, StoreUnavailableError } from './cells.js'
import { createProcessMemory, type ProcessMemory } from './memory.js'
import { createPauses } from './pause.js'
import { createRestore, createRestores } from './restores.js'
import type { Current, LeaseRequest, Result, Revision, SessionKey, Work } from './session-types.js'
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

/** The sessions of all users, shared with the other replicas. Every function takes the session or its id. */
export type Sessions = ReturnType<typeof createSessions>

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
    const logout = memory.logoutOf(session.id)
    if (logout) return { kind: 'over', end: logout.end }
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

  return {
    /** Returns the time on the clock of the store, in milliseconds since the epoch. All replicas agree on it. */
    now: cells.now,
    /**
     * Reads a session, usually with one command. Never writes. The result is `unavailable` only if Redis has
     * lost the session, or if a login has not been completed.
     * @throws StoreUnavailableError
     */
    current,
    /**
     * Returns what this process knows of a session, without reading the store. Most processes know that a session is over for good,
     * because every such end is sent to all connected processes.
     */
    known: store.known,
    /**
     * Calls `listener` once when this process learns that a session is over: after a logout, an end by the provider or by the access
     * list, or at the end of `session.maxLifetime`. A new revision, an end of an older revision, and data loss do not end a session.
     * If the session is already over, calls `listener` after the caller has returned to the event loop. The cost of a call does not
     * depend on the number of sessions and listeners. Returns a function that removes the listener.
     */
    whenOver: memory.whenOver,
    /**
     * Acquires the lease of a session, calls `work` under it, and stores its result. Calls `work` at most once, and only if nobody is
     * known to have a newer revision than `session`. Otherwise, the result says where the session stands, and the caller can repeat
     * the call with `record`. While another process has the lease, waits up to 5 seconds, outside of the queue.
     * @param session its revision is 0 for a login
     * @returns `unavailable` also if the tokens of `record` are still valid. If the result of a token request could not be stored,
     *   `record` is nevertheless the new one, which this process stores later.
     * @throws StoreUnavailableError if no lease can be acquired now; any error of `inSlot` and of `work`
     */
    underLease: <Session extends Revision>(session: Session, request: LeaseRequest, work: Work<Session>) =>
      underLease(session, { ...request, mayWait: request.mayWait ? patience(clock) : never }, work),
    /**
     * Waits at most 5 seconds until another process has restored a session that Redis has lost. The first call starts the recovery
     * time, after which the session is over.
     * @throws StoreUnavailableError
     */
    recover: (session: Revision) => underLease(session, { mayWait: patience(clock) }, nothing),
    /**
     * Returns the newest record with the fields that a request handler has changed. If the session is kept in Redis, stores it as a
     * new revision. Returns undefined if the session is over.
     * @param stored the session after the changes of the handler; its tokens are ignored
     * @throws StoreUnavailableError if the change cannot be stored now; SessionTooLargeError
     */
    change: (record: SessionRecord, stored: object) =>
      isKeptInRedis(record) ? changeInRedis(record, stored) : changeInCookie(record, stored),
    /**
     * Ends a session for good in all processes. `record` is its newest known record, so that its refresh token can be revoked.
     * `isStored` is false if the end could not be stored now. In this case, this process stores it later. Does not reject if the
     * store is unavailable. The reason is a logout by default.
     */
    end,
    /** Asks all processes to send no token request of a login or a refresh for `ms` milliseconds. */
    pause(of: 'login' | 'refresh', ms: number): void {
      pauses[of].begin(ms)
      void publish({ kind: of === 'login' ? 'loginPause' : 'pause', ms })
    },
    /** Returns the milliseconds until a token request of a login, or the first token request of a refresh, may be sent. */
    pausedMs: (of: 'login' | 'refresh') => pauses[of].leftMs(of === 'login'),
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
