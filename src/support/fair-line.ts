/**
 * A line of requests that wait for their turn. It is served in turn by person, and for each user in turn by session,
 * so that nobody waits behind the many requests of somebody else.
 */

/** The session that has sent a request, and the user who has signed in to this session. */
export interface Requester {
  readonly session: string
  /** If the server does not know who has signed in, each session counts as a user. */
  readonly person: string
}

export function createFairLine<T extends Requester>() {
  // The entries of each map are in the order in which they are served. An entry that was served moves to the end.
  const persons = new Map<string, Map<string, Set<T>>>()
  let size = 0

  /** Removes a request. Does nothing if the request is not in the line. */
  function remove(request: T) {
    const { person, session } = request
    const sessions = persons.get(person)
    const requests = sessions?.get(session)
    if (!sessions || !requests?.delete(request)) return
    size -= 1
    if (requests.size === 0) sessions.delete(session)
    if (sessions.size === 0) persons.delete(person)
  }

  return {
    /** The number of requests in the line. */
    get size() {
      return size
    },
    add(request: T) {
      const { person, session } = request
      const sessions = persons.get(person) ?? new Map<string, Set<T>>()
      const requests = sessions.get(session) ?? new Set<T>()
      requests.add(request)
      sessions.set(session, requests)
      persons.set(person, sessions)
      size += 1
    },
    remove,
    /**
     * Removes the request whose turn it is, and returns it. Skips users and sessions that are full. Returns undefined if
     * no other request is in the line.
     */
    next(isPersonFull: (person: string) => boolean, isSessionFull: (session: string) => boolean): T | undefined {
      for (const [person, sessions] of persons) {
        if (isPersonFull(person)) continue
        for (const [session, [request]] of sessions) {
          if (request === undefined || isSessionFull(session)) continue
          moveToEnd(sessions, session)
          moveToEnd(persons, person)
          remove(request)
          return request
        }
      }
      return undefined
    },
    /**
     * Finds the user with the most requests in the line, and the session of this person with the most requests. Returns
     * the newest request of this session, which stays in the line. If `preferred` has as many requests as the others, it
     * is chosen.
     */
    newestOfLargest(preferred: Requester): T | undefined {
      let largest = persons.get(preferred.person)
      for (const sessions of persons.values()) if (countOf(sessions) > countOf(largest)) largest = sessions
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
