/**
 * Limits the number of calls that run at the same time, and the number of calls that wait. Without limits, calls to a
 * slow identity provider would accumulate, and each of them needs memory and a socket. The queue of Node's `http.Agent`
 * is not sufficient, because it has neither a length limit nor priorities.
 */
export interface Queue {
  /**
   * Waits until the call may run, and resolves with a function that the caller must call when the call has ended.
   * Urgent callers have priority over all others. Callers with the same priority proceed in the order of their arrival.
   * @param waitLimit creates the signal that ends the waiting. It is called only if the caller must wait, because creating
   *   a signal with a timer costs more than all other code of this file.
   * @throws QueueFullError if too many callers with the same priority are waiting; the reason of the signal if it is
   *   aborted before the call may run
   */
  enter(waitLimit: () => AbortSignal, options?: { readonly isUrgent?: boolean }): Promise<() => void>
}

export interface QueueLimits {
  /** The maximum number of calls that run at the same time. */
  readonly atOnce: number
  /** The maximum number of urgent callers that wait, and also the maximum number of other callers that wait. */
  readonly waiting: number
}

export class QueueFullError extends Error {}

/**
 * @example const release = await createQueue({ atOnce: 64, waiting: 1000 }).enter(() => AbortSignal.timeout(1000))
 * try { await call() } finally { release() }
 */
export function createQueue({ atOnce, waiting }: QueueLimits): Queue {
  // A Set keeps the order of insertion, so its first element has waited longest.
  const urgent = new Set<() => void>()
  const ordinary = new Set<() => void>()
  let running = 0

  function waitForTurn(line: Set<() => void>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        line.delete(takeTurn)
        reject(signal.reason)
      }
      const takeTurn = () => {
        line.delete(takeTurn)
        signal.removeEventListener('abort', giveUp)
        // The call is counted before the promise resolves, because another call may arrive before this one continues.
        running++
        resolve()
      }
      line.add(takeTurn)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function createRelease(): () => void {
    let isReleased = false
    return function release() {
      if (isReleased) return
      isReleased = true
      running--
      const [next] = urgent.size > 0 ? urgent : ordinary
      next?.()
    }
  }

  return {
    async enter(waitLimit, { isUrgent = false } = {}) {
      const line = isUrgent ? urgent : ordinary
      if (running < atOnce) running++
      else if (line.size < waiting) await waitForTurn(line, waitLimit())
      else throw new QueueFullError()
      return createRelease()
    }
  }
}
