/** How many requests may be under way at once, so that one slow upstream or one page cannot take up the whole server. */
import { createQueue, type Queue, QueueFullError } from '../idp/queue.js'

export interface TurnLimits {
  /** Requests of one host that wait for the head of an answer. Answers whose head has come do not count. */
  readonly waitingForHead: number
  /** Requests of one host that stand in line for that. */
  readonly inLine: number
  /** Requests of one session that are under way, answers included. */
  readonly ofOneSession: number
}

export const TURN_LIMITS: TurnLimits = { waitingForHead: 64, inLine: 512, ofOneSession: 32 }

/** Too many requests are under way already, or the wait in line took too long. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}

export interface Turn {
  /** Call when the head of the answer has come, or will not come. */
  headCame(): void
  /** Call when the whole request is over. */
  end(): void
}

export interface Turns {
  /**
   * Resolves when the request may be sent.
   * @param signal takes the request out of the line; rejects with its reason
   * @param patienceMs the longest wait in line, after which it rejects with BusyError
   */
  take(
    request: { readonly origin: string; readonly sessionId: string },
    signal: AbortSignal,
    patienceMs: number
  ): Promise<Turn>
}

export function createTurns({ waitingForHead, inLine, ofOneSession }: TurnLimits = TURN_LIMITS): Turns {
  const queues = new Map<string, Queue>()
  const sessions = new Map<string, number>()

  function queueOf(origin: string): Queue {
    let queue = queues.get(origin)
    if (!queue) {
      queue = createQueue({ atOnce: waitingForHead, waiting: inLine })
      queues.set(origin, queue)
    }
    return queue
  }

  function enterSession(id: string): () => void {
    const count = sessions.get(id) ?? 0
    if (count >= ofOneSession) throw new BusyError('this session has too many requests under way')
    sessions.set(id, count + 1)
    return once(() => {
      const left = (sessions.get(id) ?? 1) - 1
      if (left === 0) sessions.delete(id)
      else sessions.set(id, left)
    })
  }

  return {
    async take({ origin, sessionId }, signal, patienceMs) {
      const leaveSession = enterSession(sessionId)
      try {
        const headCame = await enterLine(queueOf(origin), signal, patienceMs)
        return {
          headCame,
          end() {
            headCame()
            leaveSession()
          }
        }
      } catch (error) {
        leaveSession()
        throw error
      }
    }
  }
}

async function enterLine(queue: Queue, signal: AbortSignal, patienceMs: number): Promise<() => void> {
  const tooLong = new AbortController()
  const leave = () => tooLong.abort(signal.reason)
  const timer = setTimeout(() => tooLong.abort(new BusyError('the wait in line was too long')), patienceMs)
  signal.addEventListener('abort', leave, { once: true })
  try {
    signal.throwIfAborted()
    return await queue.enter(tooLong.signal)
  } catch (error) {
    throw error instanceof QueueFullError ? new BusyError('too many requests stand in line') : error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
  }
}

function once(action: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    action()
  }
}
