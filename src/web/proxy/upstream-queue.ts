/**
 * Limits the number of proxied requests in progress for each upstream host, each session, each user and the process. So
 * no slow upstream, page or user can use up the resources of the server, or block an upstream for others. A request
 * that exceeds a limit waits in the queue of its host.
 */
import { createFairQueue, type FairQueue, type Requester } from '../../base/fair-queue.js'
import { createRequestsInProgress, QUEUE_LIMITS, type QueueLimits, type RequestsInProgress } from './upstream-limits.js'

/** The queue was full, or the request waited too long for its turn. */
export class UpstreamQueueError extends Error {
  override readonly name = 'UpstreamQueueError'
}

/** A request that counts towards the limits. */
export interface QueueEntry {
  /** Returns false while the request waits for its turn. */
  hasStarted(): boolean
  /**
   * Waits for the turn. Resolves with true when the request may be sent, or with false when `end` is called.
   * @param patienceMs the time limit in milliseconds
   * @throws UpstreamQueueError if the time limit is exceeded, or if the request is removed from a full queue
   */
  wait(patienceMs: number): Promise<boolean>
  /**
   * Call this function when the whole body was sent to the upstream. A request without a body does not need this call.
   */
  bodySent(): void
  /** Call this function when the headers of the response have arrived, or when the request fails without a response. */
  headReceived(): void
  /** Call this function when the response is complete, or when the client has disconnected. */
  end(): void
}

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

export interface UpstreamQueue {
  /** Returns the number of waiting requests. */
  length(): number
  /**
   * Registers a request. If the queue is full, removes the newest request of the user with the most queued requests.
   * @throws UpstreamQueueError if this request itself would be removed
   */
  enter(request: QueueingRequest): QueueEntry
}

/**
 * @example const entry = createUpstreamQueue().enter({ origin, session, user, isUploading })
 * if (entry.hasStarted() || (await entry.wait(30_000))) send()
 * entry.end()
 */
export function createUpstreamQueue(limits: QueueLimits = QUEUE_LIMITS): UpstreamQueue {
  const inProgress = createRequestsInProgress(limits)
  const queues = createHostQueues(inProgress, limits.queued)
  return { length: queues.length, enter: request => createEntry(request, inProgress, queues) }
}

type HostQueues = ReturnType<typeof createHostQueues>

/** @param limit the maximum number of waiting requests of one host */
function createHostQueues(inProgress: RequestsInProgress, limit: number) {
  // The queues of the hosts with waiting requests. A queue from which a request was started moves to the end.
  const queues = new Map<string, FairQueue<WaitingRequest>>()

  /** Starts the requests of a host that no limit blocks any longer. */
  function serve(origin: string) {
    const queue = queues.get(origin)
    if (!queue) return
    while (!inProgress.isHostFull(origin)) {
      const next = queue.next(user => inProgress.isUserFull(origin, user), inProgress.isSessionFull)
      if (!next) return
      queues.delete(origin)
      if (queue.size > 0) queues.set(origin, queue)
      next.start()
    }
  }

  return {
    length: () => [...queues.values()].reduce((sum, { size }) => sum + size, 0),
    serve,
    serveAll() {
      if (queues.size > 0) for (const origin of [...queues.keys()]) serve(origin)
    },
    add(origin: string, waiting: WaitingRequest) {
      const queue = queues.get(origin) ?? createFairQueue<WaitingRequest>()
      queues.set(origin, queue)
      queue.add(waiting)
      if (queue.size <= limit) return
      const loser = queue.newestOfLargest(waiting) ?? waiting
      loser.reject()
      if (loser === waiting) throw new UpstreamQueueError('too many requests are queued')
    },
    remove(origin: string, waiting: WaitingRequest) {
      const queue = queues.get(origin)
      queue?.remove(waiting)
      if (queue?.size === 0) queues.delete(origin)
    }
  }
}

function createEntry(request: QueueingRequest, inProgress: RequestsInProgress, queues: HostQueues): QueueEntry {
  const { origin, session, user, isUploading } = request
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
    inProgress.add(request)
    state = 'inProgress'
    if (!isUploading()) freeSlot = inProgress.takeSlot(request, true)
    settle(true)
  }

  function headReceived() {
    if (!isHeadExpected) return
    isHeadExpected = false
    if (!freeSlot) return
    freeSlot()
    queues.serve(origin)
  }

  function giveUp(outcome: false | UpstreamQueueError) {
    state = 'over'
    queues.remove(origin, waiting)
    settle(outcome)
  }

  // All queued requests are blocked by a limit at the moment, so this request does not overtake any of them if it is sent
  // immediately.
  const isBlocked =
    inProgress.isHostFull(origin) || inProgress.isUserFull(origin, user) || inProgress.isSessionFull(session)
  if (isBlocked) queues.add(origin, waiting)
  else start()

  return {
    hasStarted: () => state !== 'queued',
    wait(patienceMs) {
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
    bodySent() {
      if (state === 'inProgress' && isHeadExpected) freeSlot ??= inProgress.takeSlot(request, false)
    },
    headReceived,
    end() {
      if (state === 'queued') giveUp(false)
      if (state === 'over') return
      headReceived()
      state = 'over'
      inProgress.remove(request)
      queues.serveAll()
    }
  }
}
