import { createFairLine, type Requester } from '../support/fair-line.js'

/**
 * Limits the number of calls that run at the same time, and the number of calls that wait. Without limits, calls to a
 * slow identity provider would accumulate, and each of them needs memory and a socket. The queue of Node's `http.Agent`
 * is not sufficient, because it has neither a length limit nor priorities.
 */
export interface Queue {
  /**
   * Waits until the call may run, and resolves with a function that the caller must call when the call has ended.
   * Urgent callers have priority over all others. Callers with the same priority proceed in turn by user, so that nobody
   * waits behind the many sessions of somebody else.
   * @param waitLimit creates the signal that ends the waiting. It is called only if the caller must wait, because creating
   *   a signal with a timer costs more than all other code of this file.
   * @throws QueueFullError if too many callers with the same priority are waiting; the reason of the signal if it is
   *   aborted before the call may run
   */
  enter(waitLimit: () => AbortSignal, options?: QueueOptions): Promise<() => void>
}

export interface QueueOptions {
  readonly isUrgent?: boolean | undefined
  /** For whom the call is made. Calls without a requester count as those of one user. */
  readonly requester?: Requester | undefined
}

export interface QueueLimits {
  /** The maximum number of calls that run at the same time. */
  readonly atOnce: number
  /** The maximum number of urgent callers that wait, and also the maximum number of other callers that wait. */
  readonly waiting: number
}

export class QueueFullError extends Error {}

interface Waiting extends Requester {
  readonly takeTurn: () => void
}

const NOBODY: Requester = { session: '', person: '' }
const isNeverFull = () => false

/**
 * @example const release = await createQueue({ atOnce: 64, waiting: 1000 }).enter(() => AbortSignal.timeout(1000))
 * try { await call() } finally { release() }
 */
export function createQueue({ atOnce, waiting }: QueueLimits): Queue {
  const urgent = createFairLine<Waiting>()
  const ordinary = createFairLine<Waiting>()
  let running = 0

  function waitForTurn(line: typeof urgent, requester: Requester, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        line.remove(waiting)
        reject(signal.reason)
      }
      const takeTurn = () => {
        signal.removeEventListener('abort', giveUp)
        // The call is counted before the promise resolves, because another call may arrive before this one continues.
        running++
        resolve()
      }
      const waiting = { ...requester, takeTurn }
      line.add(waiting)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function createRelease(): () => void {
    let isReleased = false
    return function release() {
      if (isReleased) return
      isReleased = true
      running--
      const line = urgent.size > 0 ? urgent : ordinary
      line.next(isNeverFull, isNeverFull)?.takeTurn()
    }
  }

  return {
    async enter(waitLimit, { isUrgent = false, requester = NOBODY } = {}) {
      const line = isUrgent ? urgent : ordinary
      if (running < atOnce) running++
      else if (line.size < waiting) await waitForTurn(line, requester, waitLimit())
      else throw new QueueFullError()
      return createRelease()
    }
  }
}
