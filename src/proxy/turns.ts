/** Limits the current requests, so that one slow upstream or one page cannot use all resources of the server. */

export interface TurnLimits {
  /** The maximum number of requests to one host that wait for the headers of a response. */
  readonly waitingForHead: number
  /** The maximum number of requests to one host that wait for their turn. */
  readonly inLine: number
  /** The maximum number of requests of one session, until their responses are complete. */
  readonly ofOneSession: number
}

export const TURN_LIMITS: TurnLimits = { waitingForHead: 64, inLine: 512, ofOneSession: 32 }

/** There are too many requests already, or a request waited too long for its turn. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}

export interface Turn {
  /** False while the request waits for its turn. */
  hasCome(): boolean
  /**
   * Waits for the turn. Resolves with true when the request may be sent, or with false if `end` was called before.
   * @param patienceMs the time limit in milliseconds, after which it rejects with BusyError
   */
  wait(patienceMs: number): Promise<boolean>
  /** Call this when the headers of the response have arrived, or when the request has failed before. */
  headCame(): void
  /** Call this when the response is complete, or when the client has disconnected. */
  end(): void
}

export interface Turns {
  /** Throws BusyError if the session has too many current requests, or too many requests wait for their turn. */
  take(origin: string, sessionId: string): Turn
}

interface Line {
  waitingForHead: number
  /** The functions that start the waiting requests, in the order of arrival. */
  readonly waiting: Set<() => void>
}

export function createTurns({ waitingForHead, inLine, ofOneSession }: TurnLimits = TURN_LIMITS): Turns {
  const lines = new Map<string, Line>()
  const sessions = new Map<string, number>()

  function lineOf(origin: string): Line {
    let line = lines.get(origin)
    if (!line) {
      line = { waitingForHead: 0, waiting: new Set() }
      lines.set(origin, line)
    }
    return line
  }

  function endInSession(id: string): void {
    const others = (sessions.get(id) ?? 1) - 1
    if (others === 0) sessions.delete(id)
    else sessions.set(id, others)
  }

  return {
    take(origin, sessionId) {
      const ofSession = sessions.get(sessionId) ?? 0
      if (ofSession >= ofOneSession) throw new BusyError('this session has too many current requests')
      const line = lineOf(origin)
      const isFree = line.waitingForHead < waitingForHead
      if (!isFree && line.waiting.size >= inLine) throw new BusyError('too many requests are waiting')
      sessions.set(sessionId, ofSession + 1)
      return createTurn(line, isFree, () => endInSession(sessionId))
    }
  }
}

function createTurn(line: Line, isFree: boolean, endInSession: () => void): Turn {
  let state: 'inLine' | 'waitingForHead' | 'answered' | 'over' = 'inLine'
  let settle = (_hasCome: boolean) => {}
  if (isFree) start()
  else line.waiting.add(start)

  function start() {
    line.waiting.delete(start)
    line.waitingForHead += 1
    state = 'waitingForHead'
    settle(true)
  }

  function headCame() {
    if (state !== 'waitingForHead') return
    state = 'answered'
    line.waitingForHead -= 1
    const [next] = line.waiting
    next?.()
  }

  function end() {
    if (state === 'over') return
    headCame()
    line.waiting.delete(start)
    state = 'over'
    endInSession()
    settle(false)
  }

  return {
    hasCome: () => state !== 'inLine',
    wait(patienceMs) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          settle = () => {}
          end()
          reject(new BusyError('the request waited too long for its turn'))
        }, patienceMs)
        settle = hasCome => {
          clearTimeout(timer)
          resolve(hasCome)
        }
      })
    },
    headCame,
    end
  }
}
