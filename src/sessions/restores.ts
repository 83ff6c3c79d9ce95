/**
 * Stores again what Redis may have lost. Decides when sessions are restored, how many of them in parallel, and when a failed
 * restore is tried again.
 */
import { type Clock, startStopwatch } from '../base/clock.js'
import { StoreUnavailableError } from './cells.js'
import type { SessionStore, StoreDependencies } from './store.js'
import * as rules from './transitions.js'

interface RestoresDependencies {
  readonly clock: Clock
  /** Restores one session. Rejects if the session could not be restored now. */
  readonly restore: (id: string) => Promise<void>
  /** Returns the ids of the sessions that Redis may have lost, the most urgent ones first. */
  readonly possiblyLost: () => Iterable<string>
}

const MIN_REPEAT_MS = 200
const MAX_REPEAT_MS = 5000
// All processes restore sessions at the same time, and each command must end within a second. A process therefore restores ten
// sessions first. After each fast step it restores twice as many, and after each slow step half as many. A step takes two round
// trips, so if the network to Redis is slow, every step is slow even without an overload. For this reason, a step also counts as
// fast if it took little longer than the fastest one.
const FIRST_RESTORED = 10
const MAX_RESTORED_IN_PARALLEL = 100
const SHORT_RESTORE_MS = 100
const LONG_RESTORE_MS = 400

export function createRestores({ clock, restore, possiblyLost }: RestoresDependencies) {
  const retries = createRetries(clock)
  /** The sessions that `all` has not restored yet, the most urgent ones first. */
  const left = new Set<string>()
  /** The number of calls to `all` so far. */
  let calls = 0

  return {
    /**
     * Restores a session in the background, and tries again until the session is restored. If a restore is in progress, it may
     * have begun before the reason for this call, so the session is then restored once more.
     */
    now: (id: string) => retries.start(id, () => restore(id), { isUrgent: true }),
    /**
     * Like `now`, but begins after 200 ms. Call this function when the reply to a command was lost, because it is then unknown
     * whether the cell has changed. The restore stores the result, or releases the lease.
     */
    soon: (id: string) => retries.start(id, () => restore(id), { delayMs: MIN_REPEAT_MS }),
    /**
     * Stores again what Redis may have lost. Tries each session again until it is restored. Call this function after each new
     * connection. If an earlier call has not restored all sessions by then, the new call takes over the remaining sessions, and
     * the earlier call returns. Never rejects.
     */
    async all(): Promise<void> {
      const call = ++calls
      for (const id of possiblyLost()) left.add(id)
      let inParallel = FIRST_RESTORED
      let fastestMs = LONG_RESTORE_MS
      let waitMs = MIN_REPEAT_MS
      while (left.size > 0 && call === calls && !retries.isClosed()) {
        const elapsedMs = startStopwatch(clock)
        const ids = takeFirst(left, inParallel)
        const results = await Promise.allSettled(ids.map(restore))
        const failed = ids.filter((_, index) => results[index]?.status === 'rejected')
        for (const id of failed) left.add(id)
        const stepMs = elapsedMs()
        fastestMs = Math.min(fastestMs, stepMs)
        if (stepMs >= LONG_RESTORE_MS) inParallel = Math.ceil(inParallel / 2)
        else if (stepMs < Math.max(SHORT_RESTORE_MS, 1.5 * fastestMs)) {
          inParallel = Math.min(2 * inParallel, MAX_RESTORED_IN_PARALLEL)
        }
        if (failed.length < ids.length) {
          waitMs = MIN_REPEAT_MS
          continue
        }
        // Every restore of this step failed: Redis is unavailable, or so overloaded that commands time out. Wait before the next
        // attempt.
        await retries.wait(waitMs)
        waitMs = Math.min(2 * waitMs, MAX_REPEAT_MS)
      }
    },
    /** Resolves when all restores started by `now()` and `soon()` have ended. */
    ended: retries.ended,
    /** Stops all attempts to restore sessions. */
    close: retries.close
  }
}

/** Removes the first values of a set, at most `count`, and returns them. */
function takeFirst<T>(set: Set<T>, count: number): T[] {
  const taken: T[] = []
  for (const value of set) {
    if (taken.length === count) break
    set.delete(value)
    taken.push(value)
  }
  return taken
}

/** Work in the background that is repeated until it succeeds. */
interface Repeated {
  work: () => Promise<unknown>
  /** Set if `start` was called again since the last attempt began. */
  again: 'urgent' | 'normal' | undefined
  /** Ends the wait for the next attempt. */
  wake: () => void
  done: Promise<void>
}

/** Repeats work in the background until it succeeds. The intervals grow from 200 ms to 5 s. */
export function createRetries(clock: Clock) {
  const running = new Map<string, Repeated>()
  const waits = new Set<() => void>()
  let isClosed = false

  /** Waits `ms` milliseconds, or until `close` or the function that `onWait` gets is called. */
  function wait(ms: number, onWait: (end: () => void) => void = () => {}): Promise<void> {
    return new Promise(resolve => {
      const end = () => {
        cancel()
        waits.delete(end)
        resolve()
      }
      const cancel = clock.after(ms, end)
      waits.add(end)
      onWait(end)
    })
  }

  async function untilDone(id: string, repeated: Repeated, delayMs: number): Promise<void> {
    let waitMs = delayMs
    while (!isClosed) {
      if (waitMs > 0) {
        await wait(waitMs, end => {
          repeated.wake = end
        })
      }
      if (isClosed) break
      repeated.again = undefined
      // An unhandled rejection would end the process, because this function runs in the background. So treat a rejection as a
      // failed attempt.
      const isDone = await repeated.work().then(
        () => true,
        () => false
      )
      // TypeScript does not see that `start` may have been called during the attempt.
      const { again } = repeated as Repeated
      if (isDone && again === undefined) break
      // After a failure, only an urgent call shortens the wait. Otherwise every request would, while Redis is overloaded.
      if (again === 'urgent') waitMs = 0
      else waitMs = isDone ? MIN_REPEAT_MS : Math.min(Math.max(2 * waitMs, MIN_REPEAT_MS), MAX_REPEAT_MS)
    }
    // Remove it in the same turn, so that no call of `start` comes between the last check and this line.
    running.delete(id)
  }

  return {
    /**
     * Calls `work` after `delayMs` milliseconds, and then repeatedly until it resolves. If an attempt for the same session is in
     * progress, calls `work` once more after it. If the next attempt is not due yet, an urgent call begins it.
     */
    start(id: string, work: () => Promise<unknown>, { delayMs = 0, isUrgent = false } = {}): void {
      const known = running.get(id)
      if (known) {
        known.work = work
        if (known.again !== 'urgent') known.again = isUrgent ? 'urgent' : 'normal'
        if (isUrgent) known.wake()
        return
      }
      const repeated: Repeated = { work, again: undefined, wake() {}, done: Promise.resolve() }
      running.set(id, repeated)
      repeated.done = untilDone(id, repeated, delayMs)
    },
    wait: (ms: number) => wait(ms),
    isClosed: () => isClosed,
    /** Resolves when no work is in progress. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.all([...running.values()].map(({ done }) => done))
    },
    close(): void {
      isClosed = true
      for (const end of waits) end()
    }
  }
}

/**
 * Creates the function that stores again what this process knows about a session, and releases the leases that it does not use. If
 * the cell cannot be decrypted, only another secret can help, so the result stays unsaved until `restoreAll` is called.
 */
export function createRestore(dependencies: StoreDependencies & { readonly store: SessionStore }) {
  const { store, memory, clock, me, recoveryMs } = dependencies

  return async function restore(id: string): Promise<void> {
    try {
      await restoreNow(id)
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || error.problem !== 'unreadable') throw error
    }
  }

  async function restoreNow(id: string): Promise<void> {
    const logout = memory.logoutOf(id)
    if (logout) {
      const { session, end } = logout
      await store.run(session, cell => rules.logOut(cell, memory.known(id).rev, end), { replacesUnreadable: true })
      memory.logOut(session, true, end)
      return
    }
    const known = memory.known(id)
    await store.run({ id, key: known.record?.key }, (cell, now) => {
      // Do not look up the leases in use before the rule runs, because a token request may end while the cell is being read.
      const uses = memory.usesOf(id)
      const sent = uses.find(use => use.sent)?.sent
      const unused = [store.owner, store.changeOwner].filter(name => !uses.some(use => use.owner === name))
      const inProgress = sent && { rev: sent.rev, ms: Math.round(clock.monotonic() - sent.at) }
      return rules.restore(cell, now, { ...known, me: me(), unused, sent: inProgress }, recoveryMs)
    })
    const { entry } = memory.seen(id)?.content ?? {}
    if (entry?.over && entry.isFinal) store.noteEnd({ id }, entry.over)
    memory.markSaved({ id, rev: known.recordRev })
  }
}
