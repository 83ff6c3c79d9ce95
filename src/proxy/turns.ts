/**
 * Limits the number of proxied requests in progress for each upstream host, each session, each user and the process.
 * A slow upstream, a page or a user then cannot use all resources of the server or block an upstream for others. A
 * request beyond a limit waits in the line of its host.
 */
import { createFairLine, type Requester } from '../support/fair-line.js'

/**
 * The maximum numbers of requests. A request is in progress from the moment at which it is sent until its response is
 * complete. It uses one connection to its host during this time.
 */
export const TURN_LIMITS = {
  /**
   * Requests to one host whose body was sent and whose response has not begun. A request whose body is still being sent
   * does not count, because a client that sends slowly would otherwise block the host. If several uploads end while all
   * places are taken, the limit is exceeded, and nothing further is sent until there is a free place.
   */
  waitingForHead: 64,
  /**
   * Places of `waitingForHead` that are reserved: each user can have only one of them. A few people with slow requests
   * therefore cannot take all places of a host.
   */
  reserved: 8,
  /** Requests in progress to one host. */
  ofOneHost: 1024,
  /** Requests in progress of one session. */
  ofOneSession: 32,
  /**
   * Requests in progress of all sessions of one user. This limit is lower than `waitingForHead`, so that one user
   * cannot take all places of a host.
   */
  ofOnePerson: 48,
  /** Requests in progress in this process. */
  ofProcess: 2048,
  /** Requests that wait in the line of one host. */
  inLine: 512
}

export type TurnLimits = typeof TURN_LIMITS

/** The line was full, or the request waited too long for its turn. */
export class UpstreamBusyError extends Error {
  override readonly name = 'UpstreamBusyError'
}

/** A request that counts towards the limits. */
export interface Turn {
  /** Returns false while the request waits for its turn. */
  hasStarted(): boolean
  /**
   * Waits for the turn. Resolves with true when the request may be sent, or with false when `end` is called.
   * @param patienceMs the time limit in milliseconds
   * @throws UpstreamBusyError if the time limit is exceeded, or if the request loses its place in a full line
   */
  wait(patienceMs: number): Promise<boolean>
  /** Call this when the whole body was sent to the upstream. Requests without a body need no call. */
  bodySent(): void
  /** Call this when the headers of the response have arrived, or when the request fails without a response. */
  headReceived(): void
  /** Call this when the response is complete, or when the client has disconnected. */
  end(): void
}

export interface TurnRequest extends Requester {
  /** The scheme, host and port of the upstream. */
  readonly origin: string
  /** Called when the turn has come. Returns true if the client has not sent the whole body yet. */
  isUploading(): boolean
}

interface Waiting extends Requester {
  /** Starts the request. */
  readonly start: () => void
  /** Removes the request from the line. Its `wait` rejects with UpstreamBusyError. */
  readonly reject: () => void
}

/**
 * @example const turn = createTurns().take({ origin, session, person, isUploading })
 * if (turn.hasStarted() || (await turn.wait(30_000))) send()
 * turn.end()
 */
export function createTurns(limits: TurnLimits = TURN_LIMITS) {
  const common = createTally(limits.waitingForHead - limits.reserved)
  const reserved = createTally(limits.reserved)
  const hosts = createTally(limits.ofOneHost)
  const sessions = createTally(limits.ofOneSession)
  const persons = createTally(limits.ofOnePerson)
  // The users who have a reserved place, each with the host of this place.
  const holders = new Set<string>()
  // The lines of the hosts with waiting requests. A line that was served moves to the end.
  const lines = new Map<string, ReturnType<typeof createFairLine<Waiting>>>()
  let inProgress = 0

  function isHostFull(origin: string): boolean {
    return inProgress >= limits.ofProcess || hosts.isFull(origin) || (common.isFull(origin) && reserved.isFull(origin))
  }

  function isPersonFull(origin: string, person: string): boolean {
    return persons.isFull(person) || (common.isFull(origin) && holders.has(`${origin} ${person}`))
  }

  /** Takes a place of a host for a request that waits for its response. Returns the function that frees the place. */
  function takePlace(origin: string, person: string, isReserved: boolean): () => void {
    const holder = `${origin} ${person}`
    const tally = isReserved ? reserved : common
    tally.add(origin)
    if (isReserved) holders.add(holder)
    return () => {
      tally.remove(origin)
      if (isReserved) holders.delete(holder)
      serve(origin)
    }
  }

  function serve(origin: string) {
    const line = lines.get(origin)
    if (!line) return
    while (!isHostFull(origin)) {
      const next = line.next(person => isPersonFull(origin, person), sessions.isFull)
      if (!next) return
      lines.delete(origin)
      if (line.size > 0) lines.set(origin, line)
      next.start()
    }
  }

  function serveAll() {
    if (lines.size > 0) for (const origin of [...lines.keys()]) serve(origin)
  }

  function enqueue(origin: string, waiting: Waiting) {
    const line = lines.get(origin) ?? createFairLine<Waiting>()
    lines.set(origin, line)
    line.add(waiting)
    if (line.size <= limits.inLine) return
    const loser = line.newestOfLargest(waiting) ?? waiting
    loser.reject()
    if (loser === waiting) throw new UpstreamBusyError('too many requests are waiting')
  }

  function leaveLine(origin: string, waiting: Waiting) {
    const line = lines.get(origin)
    line?.remove(waiting)
    if (line?.size === 0) lines.delete(origin)
  }

  return {
    /**
     * Registers a request. If the line is full, the user with the most requests in the line loses the place of a newest
     * request.
     * @throws UpstreamBusyError if the line is full, and the loser would be this request
     */
    take({ origin, session, person, isUploading }: TurnRequest): Turn {
      let state: 'inLine' | 'inProgress' | 'over' = 'inLine'
      let isHeadExpected = true
      let freePlace: (() => void) | undefined
      let settle = (_hasCome: boolean | UpstreamBusyError) => {}
      const waiting: Waiting = {
        session,
        person,
        start,
        reject: () => giveUp(new UpstreamBusyError('the line is full'))
      }

      function start() {
        inProgress += 1
        hosts.add(origin)
        sessions.add(session)
        persons.add(person)
        state = 'inProgress'
        if (!isUploading()) freePlace = takePlace(origin, person, common.isFull(origin))
        settle(true)
      }

      function bodySent() {
        if (state === 'inProgress' && isHeadExpected) freePlace ??= takePlace(origin, person, false)
      }

      function headReceived() {
        if (!isHeadExpected) return
        isHeadExpected = false
        freePlace?.()
      }

      function end() {
        if (state === 'inLine') giveUp(false)
        if (state === 'over') return
        headReceived()
        state = 'over'
        inProgress -= 1
        hosts.remove(origin)
        sessions.remove(session)
        persons.remove(person)
        serveAll()
      }

      function giveUp(outcome: false | UpstreamBusyError) {
        state = 'over'
        leaveLine(origin, waiting)
        settle(outcome)
      }

      // The requests in the line cannot be sent at the moment, so this request does not overtake any of them.
      if (isHostFull(origin) || isPersonFull(origin, person) || sessions.isFull(session)) enqueue(origin, waiting)
      else start()

      return {
        hasStarted: () => state !== 'inLine',
        wait(patienceMs) {
          return new Promise((resolve, reject) => {
            const timer = setTimeout(
              () => giveUp(new UpstreamBusyError('the request waited too long for its turn')),
              patienceMs
            )
            settle = outcome => {
              clearTimeout(timer)
              if (outcome instanceof UpstreamBusyError) reject(outcome)
              else resolve(outcome)
            }
          })
        },
        bodySent,
        headReceived,
        end
      }
    }
  }
}

function createTally(limit: number) {
  const counts = new Map<string, number>()
  const countOf = (key: string) => counts.get(key) ?? 0
  return {
    isFull: (key: string) => countOf(key) >= limit,
    add: (key: string) => void counts.set(key, countOf(key) + 1),
    remove(key: string) {
      const others = countOf(key) - 1
      if (others > 0) counts.set(key, others)
      else counts.delete(key)
    }
  }
}
