/**
 * Limits how many calls run at once and how many wait for their turn. Without a limit a slow identity provider would
 * receive more and more calls, and each of them would hold memory and a socket here. The queue of `http.Agent` is not
 * sufficient, because it has neither a length limit nor priorities.
 */
export interface Queue {
  /**
   * Waits for the caller's turn and resolves with a `release` function. The caller must call `release` when its work is
   * done. Urgent callers go first. Otherwise the order is the order of arrival. Rejects with QueueFullError if too many
   * callers of the same urgency are waiting, or with the signal's reason if it is aborted while the caller waits.
   */
  enter(signal: AbortSignal, options?: { readonly isUrgent?: boolean }): Promise<() => void>
}

export interface QueueLimits {
  /** Maximum number of callers that work at the same time. */
  readonly atOnce: number
  /**
   * Maximum number of callers that wait. Urgent callers are counted separately, with the same maximum.
   */
  readonly waiting: number
}

export class QueueFullError extends Error {}

export function createQueue({ atOnce, waiting }: QueueLimits): Queue {
  // Sets keep the order of insertion, so the first element has waited longest.
  const urgent = new Set<() => void>()
  const ordinary = new Set<() => void>()
  let running = 0

  function waitForTurn(line: Set<() => void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        line.delete(takeTurn)
        reject(signal.reason)
      }
      const takeTurn = () => {
        line.delete(takeTurn)
        signal.removeEventListener('abort', giveUp)
        // The caller is counted before the promise resolves, so that a caller that arrives in between cannot take the
        // same place.
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
    async enter(signal, { isUrgent = false } = {}) {
      signal.throwIfAborted()
      const line = isUrgent ? urgent : ordinary
      if (running < atOnce) running++
      else if (line.size < waiting) await waitForTurn(line, signal)
      else throw new QueueFullError()
      return createRelease()
    }
  }
}
