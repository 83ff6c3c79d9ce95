import type { Clock } from '../base/clock.js'
import type { SessionRecord } from '../cookie/session-record.js'

/** The listeners of one session. `endsAt` is the end of its absolute lifetime, in milliseconds since the epoch. */
interface Watched {
  readonly endsAt: number
  readonly listeners: Set<() => void>
}

// The end of `session.maxLifetime` is noticed at most this much later, in milliseconds.
const INTERVAL_MS = 500

/**
 * Keeps what must end together with a session, such as a response that is still being sent.
 * @param maxLifetimeMs the absolute lifetime of a session; infinite if it has no limit
 */
export function createOverListeners(clock: Clock, maxLifetimeMs: number) {
  const watched = new Map<string, Watched>()
  // One timer for all sessions, because most responses end long before a timer of their own would fire. It runs only while there
  // are listeners.
  let stopTimer: (() => void) | undefined

  function over(id: string): void {
    const listeners = watched.get(id)?.listeners
    watched.delete(id)
    for (const listener of listeners ?? []) listener()
  }

  function check(): void {
    const now = clock.now()
    for (const [id, { endsAt }] of watched) if (endsAt <= now) over(id)
    stopTimer = undefined
    startTimer()
  }

  function startTimer(): void {
    if (maxLifetimeMs === Number.POSITIVE_INFINITY || watched.size === 0) return
    stopTimer ??= clock.after(INTERVAL_MS, check)
  }

  return {
    /** Calls `listener` once, at the end of the session. Returns a function that removes it. */
    add({ id, loggedInAt }: Pick<SessionRecord, 'id' | 'loggedInAt'>, listener: () => void): () => void {
      const session = watched.get(id) ?? { endsAt: loggedInAt + maxLifetimeMs, listeners: new Set() }
      session.listeners.add(listener)
      watched.set(id, session)
      startTimer()
      return () => {
        session.listeners.delete(listener)
        if (session.listeners.size === 0 && watched.get(id) === session) watched.delete(id)
      }
    },
    /** Calls and removes the listeners of a session. */
    over,
    /** The ids of the sessions with listeners. */
    ids: () => watched.keys(),
    close(): void {
      stopTimer?.()
      watched.clear()
    }
  }
}
