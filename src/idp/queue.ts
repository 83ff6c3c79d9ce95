/**
 * Limits how many calls run at once and how many wait for their turn. Without a limit a slow identity provider would
 * receive more and more calls, and each of them would hold memory and a socket here. The waiting list of `http.Agent`
 * cannot serve for this, because it has no length limit and no priority.
 */
export interface Queue {
  /**
   * Resolves with a `leave` function when it is the caller's turn. The caller must call `leave` when its work is done.
   * Urgent callers go first; otherwise the order is that of arrival. Rejects with QueueFullError if too many callers of
   * the same urgency are waiting, or with the signal's reason if it is aborted while the caller waits.
   */
  enter(signal: AbortSignal, options?: { readonly isUrgent?: boolean }): Promise<() => void>
}

export interface QueueLimits {
  /** How many callers may be inside at the same time. */
  readonly atOnce: number
  /** How many callers may wait. Urgent callers have as many places of their own, so others cannot take them. */
  readonly waiting: number
}

export class QueueFullError extends Error {}

export function createQueue({ atOnce, waiting }: QueueLimits): Queue {
  // Sets keep the order of insertion, so the first element has waited longest.
  const urgent = new Set<() => void>()
  const ordinary = new Set<() => void>()
  let inside = 0

  function waitForTurn(line: Set<() => void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        line.delete(takeTurn)
        reject(signal.reason)
      }
      const takeTurn = () => {
        line.delete(takeTurn)
        signal.removeEventListener('abort', giveUp)
        // Counted before the promise resolves, so a caller that arrives in between cannot take the same place.
        inside++
        resolve()
      }
      line.add(takeTurn)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function createLeave(): () => void {
    let hasLeft = false
    return function leave() {
      if (hasLeft) return
      hasLeft = true
      inside--
      const [next] = urgent.size > 0 ? urgent : ordinary
      next?.()
    }
  }

  return {
    async enter(signal, { isUrgent = false } = {}) {
      signal.throwIfAborted()
      const line = isUrgent ? urgent : ordinary
      if (inside < atOnce) inside++
      else if (line.size < waiting) await waitForTurn(line, signal)
      else throw new QueueFullError()
      return createLeave()
    }
  }
}
