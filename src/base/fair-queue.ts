/**
 * A queue in which the users take turns. Among the requests of one user, the sessions take turns. So a user with many
 * requests does not delay the requests of other users.
 */

/** The session that has sent a request, and its user. */
export interface Requester {
  readonly session: string
  /** If the user is unknown, each session counts as a user. */
  readonly user: string
}

export interface FairQueue<T extends Requester> {
  /** The number of requests in the queue. */
  readonly size: number
  add(request: T): void
  /** Removes a request. Does nothing if the request is not in the queue. */
  remove(request: T): void
  /**
   * Removes and returns the next request. Skips users and sessions that have reached their limit. Returns undefined
   * if no request is left.
   */
  next(isUserFull: (user: string) => boolean, isSessionFull: (session: string) => boolean): T | undefined
  /**
   * Finds the user with the most queued requests, and the session of this user with the most queued requests. Returns
   * the newest request of this session without removing it. If there is a tie, prefers the user and the session of
   * `preferred`.
   */
  newestOfLargest(preferred: Requester): T | undefined
}

export function createFairQueue<T extends Requester>(): FairQueue<T> {
  // The entries of each map are in the order in which they are served. An entry that was served moves to the end.
  const users = new Map<string, Map<string, Set<T>>>()
  let size = 0

  function remove(request: T) {
    const { user, session } = request
    const sessions = users.get(user)
    const requests = sessions?.get(session)
    if (!sessions || !requests?.delete(request)) return
    size -= 1
    if (requests.size === 0) sessions.delete(session)
    if (sessions.size === 0) users.delete(user)
  }

  return {
    get size() {
      return size
    },
    add(request) {
      const { user, session } = request
      const sessions = users.get(user) ?? new Map<string, Set<T>>()
      const requests = sessions.get(session) ?? new Set<T>()
      requests.add(request)
      sessions.set(session, requests)
      users.set(user, sessions)
      size += 1
    },
    remove,
    next(isUserFull, isSessionFull) {
      for (const [user, sessions] of users) {
        if (isUserFull(user)) continue
        for (const [session, [request]] of sessions) {
          if (request === undefined || isSessionFull(session)) continue
          moveToEnd(sessions, session)
          moveToEnd(users, user)
          remove(request)
          return request
        }
      }
      return undefined
    },
    newestOfLargest(preferred) {
      let largest = users.get(preferred.user)
      for (const sessions of users.values()) if (countOf(sessions) > countOf(largest)) largest = sessions
      let requests = largest?.get(preferred.session)
      for (const others of largest?.values() ?? []) if (others.size > (requests?.size ?? 0)) requests = others
      return requests && [...requests].at(-1)
    }
  }
}

function moveToEnd<V>(map: Map<string, V>, key: string): void {
  const value = map.get(key) as V
  map.delete(key)
  map.set(key, value)
}

function countOf(sessions?: ReadonlyMap<string, ReadonlySet<unknown>>): number {
  let count = 0
  for (const { size } of sessions?.values() ?? []) count += size
  return count
}
