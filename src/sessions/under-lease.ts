/**
 * The protocol around one token request or one change of a session. It exists only here, so no caller can keep a lease, or send a
 * refresh token under an outdated one: wait for a slot of the queue, acquire the lease, run the work immediately, store its result,
 * release the lease.
 */
import { type Clock, startStopwatch, wait } from '../base/clock.js'
import type { SessionRecord } from '../cookie/session-record.js'
import { ignoreUnavailable } from './cells.js'
import type { HostSlots } from './host-slots.js'
import type { LeaseUse } from './memory.js'
import type { Pauses } from './pause.js'
import type { createRestores } from './restores.js'
import type { Current, Grant, LeaseRequest, Problem, Result, Revision, Work } from './session-types.js'
import type { SessionStore, StoreDependencies } from './store.js'
import type { Acquired, End, Outcome, Suspicion } from './transitions.js'
import * as rules from './transitions.js'

export interface UnderLeaseDependencies extends StoreDependencies {
  readonly store: SessionStore
  readonly pauses: Pauses
  readonly hostSlots: Pick<HostSlots, 'isDead'>
  readonly restores: Pick<ReturnType<typeof createRestores>, 'soon'>
  /**
   * Returns the time at which the last connection opened, on the monotonic clock. Returns undefined before the first connection
   * and without Redis.
   */
  readonly connectedAt: () => number | undefined
  /** Ends a session for good. */
  readonly end: (session: Revision, end: End) => Promise<unknown>
}

/** A change by a request handler sends no token request, so it needs no slot and ignores pauses. */
type Request = Partial<Omit<LeaseRequest, 'mayWait'>> & { readonly mayWait: () => boolean }

interface LeaseInUse {
  rev: number
  readonly suspect: Suspicion | undefined
  readonly use: LeaseUse
  /** Returns the time since the lease was requested. */
  readonly elapsedMs: () => number
}

/**
 * - `worked`: the work has run under the lease
 * - `settled`: the work has not run, and a repetition would not help
 * - `stale`: the lease was granted, but must not be used
 * - `leased`, `lost`: as in `Acquired`
 */
type Attempt =
  | { readonly kind: 'worked'; readonly lease: LeaseInUse; readonly result: Result }
  | { readonly kind: 'settled'; readonly current: Current }
  | { readonly kind: 'stale' }
  | Extract<Acquired<SessionRecord>, { readonly kind: 'leased' | 'lost' }>

/** The longest time that a request waits for a lease, in milliseconds. */
const PATIENCE_MS = 5000
const MIN_DELAY_MS = 50
const MAX_DELAY_MS = 500
/** While another owner has the lease, that owner is checked at this interval, in milliseconds, because it may have died. */
const OWNER_CHECK_MS = 1000

const runWithoutSlot: LeaseRequest['inSlot'] = send => send()

export function createUnderLease(dependencies: UnderLeaseDependencies) {
  const { store, memory, pauses, hostSlots, clock } = dependencies
  const { acquire, release } = createLeases(dependencies)
  const settle = createSettle(dependencies)

  async function attempt<Session extends Revision>(
    session: Session,
    { inSlot, isUrgent = false }: Request,
    work: Work<Session>,
    dead: string | undefined
  ): Promise<Attempt> {
    const { id, rev } = session
    const recordRev = 'fields' in session ? rev : 0
    // The provider may have asked for a pause while this request was in the queue, so check for a pause only now.
    const isLogin = rev === 0
    const pausedMs = inSlot ? pauses[isLogin ? 'login' : 'refresh'].leftMs(isLogin || isUrgent) : 0
    if (pausedMs > 0) return { kind: 'settled', current: unavailable(store.known(id), 'paused', pausedMs) }
    const known = store.known(id)
    if (known.kind === 'live' && known.record.rev > recordRev) return { kind: 'settled', current: known }
    const acquired = await acquire(session, { dead, isChange: !inSlot })
    switch (acquired.kind) {
      case 'leased':
      case 'lost':
        return acquired
      case 'paused': {
        const why = acquired.isSuspect ? 'refused' : 'provider'
        return { kind: 'settled', current: unavailable(store.known(id), why, acquired.ms) }
      }
      case 'over':
        return { kind: 'settled', current: over(acquired.end) }
      case 'newer':
        return { kind: 'settled', current: store.known(id) }
    }
    // While the lease was being requested, the cookie of another request may have shown a newer revision. In this case, the lease
    // is for an older revision.
    const { lease } = acquired
    const isFresh = lease.elapsedMs() < rules.TIMES.freshMs && !lease.use.isLossReported
    if (!isFresh || memory.known(id).rev !== rev) {
      release(session, lease)
      return { kind: 'stale' }
    }
    const grant: Grant = {
      suspect: lease.suspect,
      refusedAgain: series => rules.refusedAgain(lease.suspect?.[series], store.now()),
      leftMs: () => Math.round(rules.TIMES.requestMs - lease.elapsedMs())
    }
    if (inSlot) lease.use.sent = { rev, at: clock.monotonic() }
    try {
      return { kind: 'worked', lease, result: await work(session, grant) }
    } catch (error) {
      release(session, lease)
      throw error
    } finally {
      lease.use.sent = undefined
    }
  }

  return async function underLease<Session extends Revision>(
    session: Session,
    request: Request,
    work: Work<Session>
  ): Promise<Current> {
    const { inSlot = runWithoutSlot, mayWait } = request
    const sinceStartMs = startStopwatch(clock)
    let nextCheckAt = 0
    let dead: string | undefined
    memory.note(session)
    for (let delayMs = MIN_DELAY_MS; ; ) {
      const tried = await inSlot(() => attempt(session, request, work, dead))
      dead = undefined
      if (tried.kind === 'worked') return settle(session, tried.lease, tried.result)
      if (tried.kind === 'settled') return tried.current
      if (tried.kind === 'leased' && sinceStartMs() >= nextCheckAt) {
        nextCheckAt = sinceStartMs() + OWNER_CHECK_MS
        if (await hostSlots.isDead(tried.lease).catch(ignoreUnavailable)) dead = tried.lease.owner
      }
      if (dead === undefined && !mayWait()) return unavailable(store.known(session.id), 'pending')
      if (dead !== undefined || tried.kind === 'stale') continue
      await wait(clock, delayMs)
      delayMs = Math.min(1.5 * delayMs, MAX_DELAY_MS)
    }
  }
}

/** Returns a function that returns true until a request has waited for a lease as long as it may. */
export function patience(clock: Clock): () => boolean {
  const elapsedMs = startStopwatch(clock)
  return () => elapsedMs() < PATIENCE_MS
}

/** Requests and releases leases, and notes in the memory of this process which it is using. */
function createLeases(dependencies: UnderLeaseDependencies) {
  const { store, memory, clock, me, restores, connectedAt, recoveryMs } = dependencies

  function isRecovering(): boolean {
    const at = connectedAt()
    return at !== undefined && clock.monotonic() - at < recoveryMs
  }

  /** Releases a lease in the background that was not used. */
  function release({ id }: Revision, { use }: LeaseInUse): void {
    memory.end(id, use)
    restores.soon(id)
  }

  /** @param dead the name of an owner that has died, so its lease may be replaced */
  async function acquire(
    session: Revision,
    { dead, isChange }: { readonly dead: string | undefined; readonly isChange: boolean }
  ) {
    const { id } = session
    const ended = store.known(id)
    if (ended.kind === 'over') return ended
    // The session of a login has no earlier refresh token that another process could have used, so a login does not wait until the
    // recovery time is over.
    const known = memory.known(id)
    const isLogin = known.rev === 0
    const connection = connectedAt()
    if (isRecovering() && !isLogin) return { kind: 'lost' } as const
    const requester = isChange ? { owner: store.changeOwner } : me()
    const elapsedMs = startStopwatch(clock)
    const use = memory.begin(id, requester.owner)
    let isGranted = false
    try {
      const request = { ...known, me: requester, dead, isChange }
      const result = await store.run(session, (cell, now) => rules.acquire(cell, now, request, recoveryMs), {
        mayFail: true
      })
      const acquired = await store.learn(session, result)
      if (acquired.kind === 'current') return { kind: 'lost' } as const
      if (acquired.kind !== 'granted') return acquired
      // The command may have waited for a new connection, and Redis may have lost data meanwhile. In this case, do not use the
      // lease.
      const nowKnown = store.known(id)
      isGranted = nowKnown.kind !== 'over' && (connectedAt() === connection || isLogin)
      const lease: LeaseInUse = { rev: known.rev, suspect: acquired.suspect, use, elapsedMs }
      if (isGranted) return { kind: 'granted', lease } as const
      release(session, lease)
      return nowKnown.kind === 'over' ? nowKnown : ({ kind: 'lost' } as const)
    } catch (error) {
      restores.soon(id)
      throw error
    } finally {
      if (!isGranted) memory.end(id, use)
    }
  }

  return { acquire, release }
}

/** Stores the results of work, and releases the lease. */
function createSettle({ store, memory, restores, end }: UnderLeaseDependencies) {
  /** Stores an outcome. Remembers tokens that cannot be stored now, and stores them later. Then the result is undefined. */
  async function commit(session: Revision, { rev, use }: LeaseInUse, outcome: Outcome<SessionRecord>) {
    const { id } = session
    const { owner } = use
    const ended = store.known(id)
    if (ended.kind === 'over') return ended
    if (rules.hasTokens(outcome)) memory.addUnsaved(outcome.record)
    try {
      const committed = await store.run(session, (cell, now) => rules.commit(cell, now, { rev, owner, outcome }))
      if (rules.hasTokens(outcome)) memory.markSaved(outcome.record)
      if (outcome.kind === 'change' && committed.kind === 'stored') memory.note(outcome.record)
      return await store.learn(session, committed, rules.hasTokens(outcome) ? outcome.record : undefined)
    } catch (error) {
      restores.soon(id)
      return ignoreUnavailable(error)
    }
  }

  async function storeOutcome(session: Revision, lease: LeaseInUse, outcome: Outcome<SessionRecord>): Promise<Current> {
    const committed = await commit(session, lease, outcome)
    const known = store.known(session.id)
    const isStored = committed?.kind === 'stored'
    if (committed?.kind === 'over') return over(committed.end)
    if (committed?.kind === 'newer') return known
    if (outcome.kind === 'over') return isStored ? over(outcome.end) : unavailable(known, 'pending')
    if (outcome.kind === 'failure') {
      const why =
        outcome.refusedAs !== undefined && rules.isSuspect(lease.suspect, store.now()) ? 'refused' : 'provider'
      // After a failure without a pause, the request may be repeated immediately.
      return outcome.pauseMs > 0 ? unavailable(known, why, outcome.pauseMs) : known
    }
    if (outcome.kind === 'tokens' && outcome.pauseMs > 0 && isStored) {
      return unavailable(known, 'provider', outcome.pauseMs)
    }
    // If another process has the lease now, a change was not stored, and the caller repeats it.
    if (isStored || (outcome.kind === 'change' && committed)) return known
    return unavailable(known, 'pending')
  }

  return async function settle(session: Revision, lease: LeaseInUse, first: Result): Promise<Current> {
    const { id } = session
    try {
      let result = first
      while (result.kind === 'unfinished') {
        const { record, finish } = result
        if (record) {
          const stored = await storeOutcome(session, lease, { kind: 'unchecked', record })
          if (stored.kind !== 'live' || stored.record !== record) return stored
          lease.rev = record.rev
        }
        result = await finish()
      }
      if (result.kind !== 'over' || !result.isFinal) return await storeOutcome(session, lease, result)
      await end(session, result.end)
      return over(result.end)
    } catch (error) {
      restores.soon(id)
      throw error
    } finally {
      memory.end(id, lease.use)
    }
  }
}

function over(end: End): Current {
  return { kind: 'over', end }
}

function unavailable(known: Current, why: Problem, ms = 1000): Current {
  if (known.kind === 'over') return known
  return { ...known, kind: 'unavailable', why, retryAfterSeconds: Math.ceil(ms / 1000) }
}
