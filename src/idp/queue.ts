/**
 * How many may be at one thing at once, and how many may wait for it. A provider that has become slow would otherwise
 * be sent ever more, and every request that waits for it holds memory and a socket here.
 */
export interface Queue {
  /**
   * Resolves when it is this caller's turn, first come, first served; `leave` lets the next one in. Rejects with
   * QueueFullError at once, and with the signal's reason when that comes before the turn.
   */
  enter(signal: AbortSignal): Promise<() => void>
}

export interface QueueLimits {
  readonly atOnce: number
  readonly waiting: number
}

export class QueueFullError extends Error {}

export function createQueue({ atOnce, waiting }: QueueLimits): Queue {
  // In order of arrival.
  const waiters = new Set<() => void>()
  let inside = 0

  function createLeave(): () => void {
    let hasLeft = false
    return function leave() {
      if (hasLeft) return
      hasLeft = true
      inside--
      const [next] = waiters
      next?.()
    }
  }

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (inside >= atOnce) {
        if (waiters.size >= waiting) throw new QueueFullError()
        await new Promise<void>((resolve, reject) => {
          const giveUp = () => {
            waiters.delete(takeTurn)
            reject(signal.reason)
          }
          // Counted as inside from this moment, so that nobody who comes now overtakes.
          const takeTurn = () => {
            waiters.delete(takeTurn)
            signal.removeEventListener('abort', giveUp)
            inside++
            resolve()
          }
          waiters.add(takeTurn)
          signal.addEventListener('abort', giveUp, { once: true })
        })
      } else {
        inside++
      }
      return createLeave()
    }
  }
}
