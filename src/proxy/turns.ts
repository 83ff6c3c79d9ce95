/** How many requests may be under way at once, so that one slow upstream or one page cannot take up the whole server. */

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
  /** False while the request stands in line. */
  hasCome(): boolean
  /**
   * Resolves when the request may be sent, or with false if `end` was called before.
   * @param patienceMs the longest wait in line, after which it rejects with BusyError
   */
  wait(patienceMs: number): Promise<boolean>
  /** Call when the head of the answer has come, or will not come. */
  headCame(): void
  /** Call when the whole request is over, or when the client leaves the line. */
  end(): void
}

export interface Turns {
  /** Throws BusyError if the session has too many requests under way, or too many requests stand in line. */
  take(origin: string, sessionId: string): Turn
}

interface Line {
  waitingForHead: number
  /** In the order of arrival. Each starts one request that waits. */
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

  function leaveSession(id: string): void {
    const others = (sessions.get(id) ?? 1) - 1
    if (others === 0) sessions.delete(id)
    else sessions.set(id, others)
  }

  return {
    take(origin, sessionId) {
      const ofSession = sessions.get(sessionId) ?? 0
      if (ofSession >= ofOneSession) throw new BusyError('this session has too many requests under way')
      const line = lineOf(origin)
      const isFree = line.waitingForHead < waitingForHead
      if (!isFree && line.waiting.size >= inLine) throw new BusyError('too many requests stand in line')
      sessions.set(sessionId, ofSession + 1)
      return createTurn(line, isFree, () => leaveSession(sessionId))
    }
  }
}

function createTurn(line: Line, isFree: boolean, leaveSession: () => void): Turn {
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
    leaveSession()
    settle(false)
  }

  return {
    hasCome: () => state !== 'inLine',
    wait(patienceMs) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          settle = () => {}
          end()
          reject(new BusyError('the wait in line was too long'))
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
