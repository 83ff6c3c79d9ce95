import { createFairQueue, type FairQueue, type Requester } from '../base/fair-queue.js'

export type Queue = ReturnType<typeof createQueue>

export interface QueueOptions {
  readonly isUrgent?: boolean | undefined
  /** The session and user for whom the call is made. All calls without a requester count as calls for the same user. */
  readonly requester?: Requester | undefined
}

export interface QueueLimits {
  /** The maximum number of concurrent calls. */
  readonly concurrent: number
  /** The maximum number of waiting callers, for the urgent callers and for the other callers separately. */
  readonly waiting: number
}

export class QueueFullError extends Error {}

interface WaitingCall extends Requester {
  readonly start: () => void
}

const NOBODY: Requester = { session: '', user: '' }
const isNeverFull = () => false

/**
 * Limits the number of concurrent calls, and the number of calls that wait. Without limits, calls to a slow identity
 * provider would accumulate, and each call needs memory and a socket. The queue of Node's `http.Agent` is not
 * sufficient, because it has neither a length limit nor priorities.
 * @example const release = await createQueue({ concurrent: 64, waiting: 1000 }).enter(() => AbortSignal.timeout(1000))
 * try { await call() } finally { release() }
 */
export function createQueue({ concurrent, waiting: maxWaiting }: QueueLimits) {
  const urgent = createFairQueue<WaitingCall>()
  const ordinary = createFairQueue<WaitingCall>()
  let running = 0

  function waitForSlot(queue: FairQueue<WaitingCall>, requester: Requester, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        queue.remove(waiting)
        reject(signal.reason)
      }
      const start = () => {
        signal.removeEventListener('abort', giveUp)
        // The call is counted before the promise resolves, because another call may arrive before the caller continues.
        running++
        resolve()
      }
      const waiting = { ...requester, start }
      queue.add(waiting)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function createRelease(): () => void {
    let isReleased = false
    return function release() {
      if (isReleased) return
      isReleased = true
      running--
      const queue = urgent.size > 0 ? urgent : ordinary
      queue.next(isNeverFull, isNeverFull)?.start()
    }
  }

  return {
    /** Returns the number of waiting calls. */
    length: () => urgent.size + ordinary.size,
    /**
     * Waits until the call may run, and resolves with a function that the caller must call when the call has ended.
     * Urgent callers have priority over all others. Among callers with the same priority, the users take turns, so a
     * user with many sessions does not delay other users.
     * @param waitLimit creates the signal that ends the waiting. It is called only if the caller must wait, because creating
     *   a signal with a timer costs more than the rest of this file.
     * @throws QueueFullError if too many callers with the same priority are waiting; the reason of the signal if the
     *   signal is aborted before the call may run
     */
    async enter(waitLimit: () => AbortSignal, { isUrgent = false, requester = NOBODY }: QueueOptions = {}) {
      const queue = isUrgent ? urgent : ordinary
      if (running < concurrent) running++
      else if (queue.size < maxWaiting) await waitForSlot(queue, requester, waitLimit())
      else throw new QueueFullError()
      return createRelease()
    }
  }
}
