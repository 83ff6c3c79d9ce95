/**
 * Limits the number of proxied requests in progress for each upstream host, each session, each user and the process. So
 * no slow upstream, page or user can use up the resources of the server, or block an upstream for others. A request
 * that exceeds a limit waits in the queue of its host.
 */
import { createFairQueue, type Requester } from '../../base/fair-queue.js'

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

/** The queue was full, or the request waited too long for its turn. */
export class UpstreamQueueError extends Error {
  override readonly name = 'UpstreamQueueError'
}

/** A request that counts towards the limits. */
export type QueueEntry = ReturnType<ReturnType<typeof createUpstreamQueue>['enter']>

export interface QueueingRequest extends Requester {
  /** The scheme, host and port of the upstream. */
  readonly origin: string
  /** Called when the request may be sent. Returns true if the client has not sent the whole body yet. */
  isUploading(): boolean
}

interface WaitingRequest extends Requester {
  /** Starts the request. */
  readonly start: () => void
  /** Removes the request from the queue. Its `wait` rejects with UpstreamQueueError. */
  readonly reject: () => void
}

/**
 * @example const entry = createUpstreamQueue().enter({ origin, session, user, isUploading })
 * if (entry.hasStarted() || (await entry.wait(30_000))) send()
 * entry.end()
 */
export function createUpstreamQueue(limits: QueueLimits = QUEUE_LIMITS) {
  const shared = createTally(limits.waitingForHead - limits.reserved)
  const reserved = createTally(limits.reserved)
  const hosts = createTally(limits.ofOneHost)
  const sessions = createTally(limits.ofOneSession)
  const users = createTally(limits.ofOneUser)
  // The requests that occupy reserved slots, as pairs of host and user.
  const holders = new Set<string>()
  // The queues of the hosts with waiting requests. A queue from which a request was started moves to the end.
  const queues = new Map<string, ReturnType<typeof createFairQueue<WaitingRequest>>>()
  let inProgress = 0

  function isHostFull(origin: string): boolean {
    return inProgress >= limits.ofProcess || hosts.isFull(origin) || (shared.isFull(origin) && reserved.isFull(origin))
  }

  function isUserFull(origin: string, user: string): boolean {
    return users.isFull(user) || (shared.isFull(origin) && holders.has(`${origin} ${user}`))
  }

  /** Takes a slot of a host for a request that waits for its response. Returns the function that frees the slot. */
  function takeSlot(origin: string, user: string, isReserved: boolean): () => void {
    const holder = `${origin} ${user}`
    const tally = isReserved ? reserved : shared
    tally.add(origin)
    if (isReserved) holders.add(holder)
    return () => {
      tally.remove(origin)
      if (isReserved) holders.delete(holder)
      serve(origin)
    }
  }

  function serve(origin: string) {
    const queue = queues.get(origin)
    if (!queue) return
    while (!isHostFull(origin)) {
      const next = queue.next(user => isUserFull(origin, user), sessions.isFull)
      if (!next) return
      queues.delete(origin)
      if (queue.size > 0) queues.set(origin, queue)
      next.start()
    }
  }

  function serveAll() {
    if (queues.size > 0) for (const origin of [...queues.keys()]) serve(origin)
  }

  function enqueue(origin: string, waiting: WaitingRequest) {
    const queue = queues.get(origin) ?? createFairQueue<WaitingRequest>()
    queues.set(origin, queue)
    queue.add(waiting)
    if (queue.size <= limits.queued) return
    const loser = queue.newestOfLargest(waiting) ?? waiting
    loser.reject()
    if (loser === waiting) throw new UpstreamQueueError('too many requests are queued')
  }

  function leaveQueue(origin: string, waiting: WaitingRequest) {
    const queue = queues.get(origin)
    queue?.remove(waiting)
    if (queue?.size === 0) queues.delete(origin)
  }

  return {
    /** Returns the number of waiting requests. */
    length: () => [...queues.values()].reduce((sum, { size }) => sum + size, 0),
    /**
     * Registers a request. If the queue is full, removes the newest request of the user with the most queued requests.
     * @throws UpstreamQueueError if this request itself would be removed
     */
    enter({ origin, session, user, isUploading }: QueueingRequest) {
      let state: 'queued' | 'inProgress' | 'over' = 'queued'
      let isHeadExpected = true
      let freeSlot: (() => void) | undefined
      let settle = (_hasCome: boolean | UpstreamQueueError) => {}
      const waiting: WaitingRequest = {
        session,
        user,
        start,
        reject: () => giveUp(new UpstreamQueueError('the queue is full'))
      }

      function start() {
        inProgress += 1
        hosts.add(origin)
        sessions.add(session)
        users.add(user)
        state = 'inProgress'
        if (!isUploading()) freeSlot = takeSlot(origin, user, shared.isFull(origin))
        settle(true)
      }

      /**
       * Call this function when the whole body was sent to the upstream. A request without a body does not need this
       * call.
       */
      function bodySent() {
        if (state === 'inProgress' && isHeadExpected) freeSlot ??= takeSlot(origin, user, false)
      }

      /**
       * Call this function when the headers of the response have arrived, or when the request fails without a response.
       */
      function headReceived() {
        if (!isHeadExpected) return
        isHeadExpected = false
        freeSlot?.()
      }

      /** Call this function when the response is complete, or when the client has disconnected. */
      function end() {
        if (state === 'queued') giveUp(false)
        if (state === 'over') return
        headReceived()
        state = 'over'
        inProgress -= 1
        hosts.remove(origin)
        sessions.remove(session)
        users.remove(user)
        serveAll()
      }

      function giveUp(outcome: false | UpstreamQueueError) {
        state = 'over'
        leaveQueue(origin, waiting)
        settle(outcome)
      }

      // All queued requests are blocked by a limit at the moment, so this request does not overtake any of them if it is sent
      // immediately.
      if (isHostFull(origin) || isUserFull(origin, user) || sessions.isFull(session)) enqueue(origin, waiting)
      else start()

      return {
        /** Returns false while the request waits for its turn. */
        hasStarted: () => state !== 'queued',
        /**
         * Waits for the turn. Resolves with true when the request may be sent, or with false when `end` is called.
         * @param patienceMs the time limit in milliseconds
         * @throws UpstreamQueueError if the time limit is exceeded, or if the request is removed from a full queue
         */
        wait(patienceMs: number): Promise<boolean> {
          return new Promise((resolve, reject) => {
            const timer = setTimeout(
              () => giveUp(new UpstreamQueueError('the request waited too long for its turn')),
              patienceMs
            )
            settle = outcome => {
              clearTimeout(timer)
              if (outcome instanceof UpstreamQueueError) reject(outcome)
              else resolve(outcome)
            }
          })
        },
        bodySent,
        headReceived,
        end
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
