/**
 * The session store of one process. It runs the rules (`rules.ts`) on the cells of the sessions, and remembers what Redis may
 * lose.
 *
 * A *lease* is the right of one process to send the refresh token of a session. Every session has a *revision*, a number that
 * grows by 1 with each stored token response and each stored change by a request handler. The *record* is the session at its
 * newest revision. ARCHITECTURE.md explains the design.
 */

import { type Clock, startStopwatch } from '../base/clock.js'
import { type CookieSession, hasTokens, type SessionRecord } from '../cookie/record.js'
import { apply, type Cells, ignoreUnavailable, type Message, type Rule, StoreUnavailableError } from './cells.js'
import { createProcessMemory, type Work } from './memory.js'
import type { SessionKey } from './redis-cells.js'
import { createRestores } from './restores.js'
import type { Acquired, Cell, Committed, Found, Outcome, Owner, Suspicion } from './transitions.js'
import * as rules from './transitions.js'

/**
 * A lease that this process was granted. At the end, call `commit`, which releases the lease. If the lease was not used, call
 * `giveUp` instead.
 */
export interface GrantedLease {
  /** The revision for which the lease was granted. */
  readonly rev: number
  /** The recent ambiguous refusals of this refresh token. Undefined if there were none. */
  readonly suspect: Suspicion | undefined
  /**
   * False if the lease was requested more than a second ago, or if another process has reported data loss since. In both cases,
   * the lease must be acquired again before a refresh token or code is sent.
   */
  isFresh(): boolean
  /** Returns the milliseconds that a token request under this lease may still take. */
  leftMs(): number
  /**
   * Sends the refresh token of this revision, or, for a login, the authorization code. Call `send` in the same turn of the event
   * loop in which the lease was acquired. In a later turn of the loop, Redis may already have lost the lease.
   */
  send<Response>(request: (timeoutMs: number) => Promise<Response>): Promise<Response>
  /**
   * Stores the outcome of a token request or of a change, and releases the lease. If the store is unavailable, returns undefined,
   * remembers the tokens of the outcome, and stores them later. If the outcome `unchecked` was stored, the lease stays, for the
   * next revision.
   */
  commit(outcome: Outcome<SessionRecord>): Promise<Commit | undefined>
  /** Releases the lease in the background. */
  giveUp(): void
}

export type Acquisition =
  | Exclude<Acquired<SessionRecord>, { readonly kind: 'granted' }>
  | { readonly kind: 'granted'; readonly lease: GrantedLease }

export type Commit = Committed<SessionRecord>

interface SessionStoreDependencies {
  readonly cells: Cells<Cell<SessionRecord>, SessionKey>
  readonly clock: Clock
  /** Returns the `Owner` that this process writes into its leases. */
  readonly me: () => Owner
  /**
   * The recovery time, in milliseconds. It begins with each new connection and with each data loss. Until it has passed, only
   * logins get a lease. Without Redis, it is 0.
   */
  readonly recoveryMs: number
  /**
   * Returns the time at which the last connection opened, on the monotonic clock. Returns undefined before the first connection
   * and without Redis.
   */
  readonly connectedAt: () => number | undefined
  /** Sends a message to all processes. Never rejects. */
  readonly publish: (message: Message) => Promise<void>
  /** The lifetime of a cell, in milliseconds. */
  readonly lifetimeMs: number
}

export type SessionStore = ReturnType<typeof createSessionStore>

// During the 2 seconds after data loss, no process is granted a lease. A lease that was requested less than a second ago is
// therefore still exclusive, even if Redis has lost it since.
const FRESH_MS = 1000
/**
 * A token request ends at most this many milliseconds after its lease was requested. The lease lasts longer, so the request
 * always ends before its lease.
 */
export const REQUEST_MS = 60_000
// After a pause, code exchanges and the second token requests of dual mode may be sent this many milliseconds earlier than the
// first token requests of refreshes. Otherwise the first requests of other sessions would use up the quota, and no session would
// get both tokens.
const SECOND_REQUESTS_FIRST_MS = 1000

// The receivers of a message need only the beginning of the reason, and the length of a message is limited.
const WHY_LENGTH = 64

/** @example const store = createSessionStore({ cells, clock, me, recoveryMs: 0, connectedAt, publish, lifetimeMs }) */
export function createSessionStore(dependencies: SessionStoreDependencies) {
  const { cells, clock, me, recoveryMs, connectedAt, publish, lifetimeMs } = dependencies
  const memory = createProcessMemory(clock, lifetimeMs)
  const { owner } = me()
  // A change by a request handler uses a separate owner name. With the same name, the change would get the lease that a refresh
  // in the same process already has.
  const changeOwner = `${owner}/change`
  let pausedUntil = Number.NEGATIVE_INFINITY
  const restores = createRestores({ clock, restore, possiblyLost: memory.possiblyLost })

  function run<Result>(
    { id, key }: SessionKey,
    rule: (cell: Cell<SessionRecord> | undefined, now: number) => rules.Step<SessionRecord, Result>,
    options: { readonly isWhole?: boolean; readonly mayFail?: boolean; readonly replacesUnreadable?: boolean } = {}
  ): Promise<Result> {
    const applied: Rule<Cell<SessionRecord>, Result> = (cell, now) => {
      const { message, ...step } = rule(cell, now)
      if (!message || !step.cell) return step
      const { rev, over } = step.cell.entry
      return { ...step, message: message === 'lost' ? { kind: message, id, rev, from: owner } : endOf(id, rev, over) }
    }
    const last = options.isWhole ? undefined : memory.seen(id)
    const onSeen = (snapshot: Parameters<typeof memory.see>[1]) => memory.see(id, snapshot)
    return apply(cells, { id, key }, applied, { ...options, last, onSeen })
  }

  /**
   * Remembers the result of a rule. If the result only says that there is a newer revision, also reads the record of that
   * revision.
   */
  async function learn<Result extends { readonly kind: string }>(
    session: SessionKey,
    result: Result | Found<SessionRecord>
  ): Promise<Result | Found<SessionRecord>> {
    const { id } = session
    if (result.kind === 'over' && (result as rules.Over).isFinal) {
      memory.logOut(session, true, (result as rules.Over).why)
    }
    if (result.kind !== 'newer') return result
    const newer = result as rules.Newer<SessionRecord>
    if (newer.record) {
      memory.remember(id, newer.rev, newer.record)
      return newer
    }
    const content = await readCell(session, true)
    const found = rules.find(content, memory.known(id))
    if (found.kind === 'newer' && !found.record) throw new StoreUnavailableError('unreadable')
    return learn(session, found)
  }

  /** Reads and remembers the cell of a session. */
  async function readCell(session: SessionKey, isWhole: boolean): Promise<Cell<SessionRecord> | undefined> {
    const snapshot = await cells.read(session, isWhole)
    if (snapshot.isUnreadable) throw new StoreUnavailableError('unreadable')
    memory.see(session.id, snapshot)
    return snapshot.content
  }

  /** Stores again what this process knows about a session, and releases the leases that this process has but does not use. */
  async function restore(id: string): Promise<void> {
    const logout = memory.logoutOf(id)
    if (logout) {
      const { session, why } = logout
      await run(session, cell => rules.logOut(cell, memory.known(id).rev, why), { replacesUnreadable: true })
      memory.logOut(session, true, why)
      return
    }
    const known = memory.known(id)
    await run({ id, key: known.record?.key }, (cell, now) => {
      // Do not look up the leases in use before the rule runs, because a token request may end while the cell is being read.
      const works = memory.worksOf(id)
      const sent = works.find(work => work.sent)?.sent
      const unused = [owner, changeOwner].filter(name => !works.some(work => work.owner === name))
      const request = { ...known, me: me(), unused }
      const inProgress = sent && { rev: sent.rev, ms: Math.round(clock.monotonic() - sent.at) }
      return rules.restore(cell, now, { ...request, sent: inProgress }, recoveryMs)
    })
    memory.markSaved({ id, rev: known.recordRev })
  }

  function grantedLease(
    session: SessionKey,
    work: Work,
    elapsedMs: () => number,
    granted: Pick<GrantedLease, 'rev' | 'suspect'>
  ): GrantedLease {
    let { rev } = granted
    const end = () => memory.end(session.id, work)
    const leftMs = () => Math.round(REQUEST_MS - elapsedMs())
    return {
      ...granted,
      isFresh: () => elapsedMs() < FRESH_MS && !work.isLossReported,
      leftMs,
      async send(request) {
        work.sent = { rev, at: clock.monotonic() }
        try {
          return await request(leftMs())
        } finally {
          work.sent = undefined
        }
      },
      async commit(outcome) {
        let keepsLease = false
        try {
          const committed = await commit(session, { rev, owner: work.owner }, outcome)
          keepsLease = outcome.kind === 'unchecked' && committed?.kind === 'stored'
          if (keepsLease) rev++
          return committed
        } finally {
          if (!keepsLease) end()
        }
      },
      giveUp() {
        end()
        restores.soon(session.id)
      }
    }
  }

  /** Stores an outcome. Remembers tokens that cannot be stored now, and stores them later. */
  async function commit(
    session: SessionKey,
    { owner, rev }: { readonly owner: string; readonly rev: number },
    outcome: Outcome<SessionRecord>
  ): Promise<Commit | undefined> {
    const { id } = session
    const ended = endHere(id)
    if (ended) return ended
    if (rules.hasTokens(outcome)) memory.addUnsaved(outcome.record)
    try {
      const committed = await run(session, (cell, now) => rules.commit(cell, now, { rev, owner, outcome }))
      if (rules.hasTokens(outcome)) memory.markSaved(outcome.record)
      if (outcome.kind === 'change' && committed.kind === 'stored') {
        memory.remember(id, outcome.record.rev, outcome.record)
      }
      return (await learn(session, committed)) as Commit
    } catch (error) {
      restores.soon(id)
      return ignoreUnavailable(error)
    }
  }

  /** Returns the end of a session that this process knows to be over for good. */
  function endHere(id: string): rules.Over | undefined {
    const logout = memory.logoutOf(id)
    return logout && { kind: 'over', why: logout.why, isFinal: true }
  }

  function endOf(id: string, rev: number, why = rules.LOGGED_OUT): Message {
    return {
      kind: 'loggedOut',
      id,
      rev,
      from: owner,
      ...(why !== rules.LOGGED_OUT && { why: why.slice(0, WHY_LENGTH) })
    }
  }

  function isRecovering(): boolean {
    const at = connectedAt()
    return at !== undefined && clock.monotonic() - at < recoveryMs
  }

  function pauseHere(ms: number): void {
    pausedUntil = Math.max(pausedUntil, clock.now() + Math.min(ms, rules.TIMES.maxPauseMs))
  }

  return {
    /** The time on the clock of the store, in milliseconds since the epoch. */
    now: cells.now,
    /** Remembers the revision of a cookie, and its record if it contains one. */
    note(session: CookieSession): void {
      memory.remember(session.id, session.rev, hasTokens(session) ? session : undefined)
    },
    /**
     * Returns the session at its newest known revision. Returns undefined if this process does not have the record of that
     * revision.
     */
    newest(id: string): SessionRecord | undefined {
      const { rev, record, recordRev } = memory.known(id)
      return recordRev === rev ? record : undefined
    },
    /**
     * False if only this process has the newest record, because the record is not stored yet. While a record is not stored, a
     * reference (the cookie of a session in Redis) must not contain its revision.
     */
    isSaved: (id: string): boolean => !memory.isUnsaved(id),
    /**
     * True if this process knows that the session is over for good. Most processes know it, because every such end is sent to all
     * connected processes.
     */
    isLoggedOut: (id: string): boolean => memory.logoutOf(id) !== undefined,
    /** Like `isLoggedOut`, but returns the end of the session. */
    endHere,
    /**
     * Reads a session from the store, usually with one command, and compares it with what this process knows.
     * @throws StoreUnavailableError, like `acquire` and `commit`
     */
    async find(session: SessionKey): Promise<Found<SessionRecord>> {
      const { id } = session
      const ended = endHere(id)
      if (ended) return ended
      const cell = await readCell(session, memory.recordOf(id) === undefined)
      return learn(session, rules.find(cell, memory.known(id)))
    },
    /**
     * Returns the cell of a session, without remembering it. If the session is kept in Redis, the cell comes without its record,
     * because only the cookie has the key that decrypts the record.
     * @throws StoreUnavailableError
     */
    async read(id: string): Promise<Cell<SessionRecord> | undefined> {
      const { content, isUnreadable } = await cells.read({ id }, true)
      if (isUnreadable) throw new StoreUnavailableError('unreadable')
      return content
    },
    /**
     * Requests the lease of a session.
     * @param dead the name of an owner that has died, so its lease may be replaced
     * @param isChange true for a change by a request handler
     */
    async acquire(
      session: SessionKey,
      { dead, isChange = false }: { readonly dead?: string | undefined; readonly isChange?: boolean | undefined } = {}
    ): Promise<Acquisition> {
      const { id } = session
      const ended = endHere(id)
      if (ended) return ended
      // The session of a login has no earlier refresh token that another process could have used, so a login does not wait until
      // the recovery time is over.
      const known = memory.known(id)
      const isLogin = known.rev === 0
      const connection = connectedAt()
      if (isRecovering() && !isLogin) return { kind: 'lost' }
      const requester = isChange ? { owner: changeOwner } : me()
      const elapsedMs = startStopwatch(clock)
      const work = memory.begin(id, requester.owner)
      const rule = (cell: Cell<SessionRecord> | undefined, now: number) =>
        rules.acquire(cell, now, { ...known, me: requester, dead, isChange }, recoveryMs)
      let isGranted = false
      try {
        const acquired = await run(session, rule, { mayFail: true }).then(result => learn(session, result))
        if (acquired.kind === 'current') return { kind: 'lost' }
        if (acquired.kind !== 'granted') return acquired
        const lease = grantedLease(session, work, elapsedMs, { rev: known.rev, suspect: acquired.suspect })
        // The command may have waited for a new connection, and Redis may have lost data meanwhile. In this case, do not use the
        // lease.
        isGranted = !memory.logoutOf(id) && (connectedAt() === connection || isLogin)
        if (isGranted) return { kind: 'granted', lease }
        lease.giveUp()
        return endHere(id) ?? { kind: 'lost' }
      } catch (error) {
        restores.soon(id)
        throw error
      } finally {
        if (!isGranted) memory.end(id, work)
      }
    },
    /**
     * Ends a session for good in all processes. `record` is the newest known record of the session, so that its refresh token can be
     * revoked. `isStored` is false if the logout could not be stored now. In this case, this process stores the logout later.
     * Does not reject if the store is unavailable.
     * @param why the reason: a logout, or an end by the access list
     */
    async logOut(
      session: SessionKey,
      why = rules.LOGGED_OUT
    ): Promise<{ readonly record: SessionRecord | undefined; readonly isStored: boolean }> {
      const { id } = session
      const { rev, record } = memory.known(id)
      memory.remember(id, rev)
      memory.logOut(session, false, why)
      try {
        const options = { isWhole: true, replacesUnreadable: true }
        const stored = await run(session, cell => rules.logOut(cell, rev, why), options)
        memory.logOut(session, true, why)
        return { record: stored && stored.rev > (record?.rev ?? 0) ? stored.record : record, isStored: true }
      } catch (error) {
        ignoreUnavailable(error)
        restores.soon(id)
        await publish(endOf(id, rev, why))
        return { record, isStored: false }
      }
    },
    /** Asks all processes to send no token request for `ms` milliseconds. */
    pause(ms: number): void {
      pauseHere(ms)
      void publish({ kind: 'pause', ms })
    },
    /**
     * Returns the milliseconds until a token request may be sent.
     * @param isUrgent true for a code exchange and for the second request of dual mode, which may be sent earlier after a pause
     */
    pausedMs(isUrgent: boolean): number {
      const leftMs = pausedUntil - clock.now() + (isUrgent ? 0 : SECOND_REQUESTS_FIRST_MS)
      // If the time left is longer than the longest pause, the clock was set back. The end of the pause is then wrong, so ignore
      // the pause.
      return leftMs > rules.TIMES.maxPauseMs + SECOND_REQUESTS_FIRST_MS ? 0 : Math.max(0, leftMs)
    },
    /** Handles a message from any process, including this process. */
    receive(message: Message): void {
      if (message.kind === 'pause') {
        pauseHere(message.ms)
        return
      }
      const { id, rev, from } = message
      if (message.kind === 'loggedOut') {
        memory.logOut({ id }, true, message.why ?? rules.LOGGED_OUT)
      } else if (from !== owner) {
        const works = memory.worksOf(id)
        for (const work of works) work.isLossReported = true
        const knowsMore = rev > 0 && memory.known(id).rev >= rev
        if (works.some(({ sent }) => sent) || memory.logoutOf(id) || knowsMore) restores.now(id)
      }
    },
    /** Stores again what Redis may have lost. Call this function after each new connection. Never rejects. */
    restoreAll: restores.all,
    /** The number of sessions that this process remembers. */
    remembered: memory.size,
    /** Resolves when every result and logout that could not be stored earlier is stored. */
    saved: restores.ended,
    /** Stops all attempts to restore sessions. */
    close: restores.close
  }
}
