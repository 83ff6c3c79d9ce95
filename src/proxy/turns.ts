/**
 * Limits the number of proxied requests for each upstream host and each session, so that a slow upstream or a single
 * page cannot use all resources of the server. If an upstream has too many requests without a response, a new request
 * waits in a line for its turn.
 */

export interface TurnLimits {
  /** The maximum number of requests to one host that were sent and have not received the headers of a response yet. */
  readonly waitingForHead: number
  /** The maximum number of requests to one host that wait for their turn. */
  readonly inLine: number
  /** The maximum number of requests of one session that have no complete response yet. */
  readonly ofOneSession: number
}

export const TURN_LIMITS: TurnLimits = { waitingForHead: 64, inLine: 512, ofOneSession: 32 }

/** A limit was exceeded, or a request waited too long for its turn. */
export class BusyError extends Error {
  override readonly name = 'BusyError'
}

/** A request that counts towards the limits. */
export interface Turn {
  /** Returns false while the request waits for its turn. */
  hasCome(): boolean
  /**
   * Waits for the turn. Resolves with true when the request may be sent, or with false when `end` is called.
   * @param patienceMs the time limit in milliseconds
   * @throws BusyError if the time limit is exceeded
   */
  wait(patienceMs: number): Promise<boolean>
  /** Call this when the headers of the response have arrived, or when the request fails without a response. */
  headCame(): void
  /** Call this when the response is complete, or when the client has disconnected. */
  end(): void
}

export interface Turns {
  /**
   * Registers a request. Throws BusyError if its session has too many requests, or if too many requests wait for their
   * turn.
   */
  take(origin: string, sessionId: string): Turn
}

interface Line {
  waitingForHead: number
  /** One function for each waiting request, in the order of arrival. The function starts the request. */
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
      if (ofSession >= ofOneSession) throw new BusyError('this session has too many requests at the same time')
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
