/** The limits of the API proxy, and the counts of the requests in progress. */
import type { Requester } from '../../base/fair-queue.js'

/**
 * The maximum numbers of requests. A request is in progress from the moment when it is sent until its response is
 * complete. During this time, it uses one connection to its host.
 */
export const QUEUE_LIMITS = {
  /**
   * The slots of a host. A request has a slot from the end of its body until the beginning of its response. A request
   * whose body is still being sent needs no slot, because a client that sends slowly would otherwise block the host. If
   * uploads end while all slots are taken, their requests exceed the limit. New requests then get only reserved slots
   * until there are free slots again.
   */
  waitingForHead: 64,
  /**
   * The number of reserved slots of a host. Each user can have only one reserved slot, so a few users with slow
   * requests cannot take all slots of a host.
   */
  reserved: 8,
  /** Requests in progress to one host. */
  ofOneHost: 1024,
  /** Requests in progress of one session. */
  ofOneSession: 32,
  /**
   * Requests in progress of all sessions of one user. This limit is lower than `waitingForHead`, so that one user
   * cannot take all slots of a host.
   */
  ofOneUser: 48,
  /** Requests in progress in this process. */
  ofProcess: 2048,
  /** Requests in the queue of one host. */
  queued: 512
}

export type QueueLimits = typeof QUEUE_LIMITS

interface CountedRequest extends Requester {
  /** The scheme, host and port of the upstream. */
  readonly origin: string
}

export interface RequestsInProgress {
  /** True if the host, or the process, can have no further request. */
  isHostFull(origin: string): boolean
  isUserFull(origin: string, user: string): boolean
  isSessionFull(session: string): boolean
  add(request: CountedRequest): void
  remove(request: CountedRequest): void
  /**
   * Takes a slot of a host for a request that waits for its response. Returns the function that frees the slot.
   * @param mayBeReserved true if the slot is one of the reserved slots when all others are taken, false if the request
   *   exceeds the limit then
   */
  takeSlot(request: CountedRequest, mayBeReserved: boolean): () => void
}

export function createRequestsInProgress(limits: QueueLimits): RequestsInProgress {
  const shared = createTally(limits.waitingForHead - limits.reserved)
  const reserved = createTally(limits.reserved)
  const hosts = createTally(limits.ofOneHost)
  const sessions = createTally(limits.ofOneSession)
  const users = createTally(limits.ofOneUser)
  // The requests that occupy reserved slots, as pairs of host and user.
  const holders = new Set<string>()
  let total = 0

  return {
    isHostFull: origin =>
      total >= limits.ofProcess || hosts.isFull(origin) || (shared.isFull(origin) && reserved.isFull(origin)),
    isUserFull: (origin, user) => users.isFull(user) || (shared.isFull(origin) && holders.has(`${origin} ${user}`)),
    isSessionFull: sessions.isFull,
    add({ origin, session, user }) {
      total += 1
      hosts.add(origin)
      sessions.add(session)
      users.add(user)
    },
    remove({ origin, session, user }) {
      total -= 1
      hosts.remove(origin)
      sessions.remove(session)
      users.remove(user)
    },
    takeSlot({ origin, user }, mayBeReserved) {
      const isReserved = mayBeReserved && shared.isFull(origin)
      const holder = `${origin} ${user}`
      const tally = isReserved ? reserved : shared
      tally.add(origin)
      if (isReserved) holders.add(holder)
      return () => {
        tally.remove(origin)
        if (isReserved) holders.delete(holder)
      }
    }
  }
}

function createTally(limit: number) {
  const counts = new Map<string, number>()
  const countOf = (key: string) => counts.get(key) ?? 0
  return {
    isFull: (key: string) => countOf(key) >= limit,
    add: (key: string) => void counts.set(key, countOf(key) + 1),
    remove(key: string) {
      const others = countOf(key) - 1
      if (others > 0) counts.set(key, others)
      else counts.delete(key)
    }
  }
}
