/**
 * Limits the calls to other servers. A call that exceeds a limit waits in a queue, in which the users take turns, and among the
 * calls of one user the sessions. So no slow server, page or user can use up the resources of this process or delay others.
 */

/** The session for which a call is made, and its user. */
export interface Requester {
  readonly session: string
  /** If the user is unknown, each session counts as a user. */
  readonly user: string
}

interface Call extends Requester {
  /** The queue in which the call waits, for example that of a host. */
  readonly queue: string
  /** Calls in an urgent queue start before those in other queues. */
  readonly isUrgent?: boolean
  /** Called when the call starts. If it returns true, the call gets its slot when `takeSlot` is called. */
  readonly isUploading?: () => boolean
}

/** The maximum numbers of calls. A call is in progress from its start until it leaves. */
export interface QueueLimits {
  readonly inProgress: number
  readonly ofOneQueue: number
  readonly ofOneUser: number
  readonly ofOneSession: number
  /** The calls of one queue that wait for their responses. If calls take slots later than at their start, they can be more. */
  readonly slots: number
  /** The number of these slots of which each user can have only one, so that a few users cannot take all slots of a queue. */
  readonly reserved: number
  /** The calls that wait in one queue. */
  readonly waiting: number
}

const UNLIMITED = { ofOneQueue: Infinity, ofOneUser: Infinity, ofOneSession: Infinity, slots: Infinity, reserved: 0 }

/** The call is not made, because its queue is full, or because it has waited for too long. */
export class QueueError extends Error {
  override readonly name = 'QueueError'
  readonly reason: 'full' | 'timeout'

  constructor(reason: QueueError['reason']) {
    super(reason === 'full' ? 'too many calls are waiting' : 'the call has waited for too long')
    this.reason = reason
  }
}

/** A call that counts towards the limits. Only this file changes it. */
export interface Turn {
  readonly call: Call
  readonly queue: Queue
  state: 'waiting' | 'inProgress' | 'over'
  slot: 'shared' | 'reserved' | 'freed' | undefined
  settle: ((outcome: boolean | QueueError) => void) | undefined
}

interface Queue {
  readonly name: string
  readonly isUrgent: boolean
  /** The waiting calls of each session of each user. Users and sessions are in the order in which they are served. */
  readonly users: Map<string, Map<string, Set<Turn>>>
  waiting: number
  inProgress: number
  sharedSlots: number
  /** The users who have a reserved slot. */
  readonly holders: Set<string>
}

export type FairQueue = ReturnType<typeof createFairQueue>

/**
 * @example const turn = queue.enter({ queue: 'token', session, user })
 * try { if (turn.state === 'inProgress' || (await queue.wait(turn, 1000))) await call() } finally { queue.leave(turn) }
 */
export function createFairQueue(given: Pick<QueueLimits, 'inProgress' | 'waiting'> & Partial<QueueLimits>) {
  const limits: QueueLimits = { ...UNLIMITED, ...given }
  const shared = limits.slots - limits.reserved
  // The queues that have calls. A queue from which a call has started moves to the end.
  const queues = new Map<string, Queue>()
  const ofUsers = createTally(limits.ofOneUser)
  const ofSessions = createTally(limits.ofOneSession)
  let inProgress = 0
  let waiting = 0

  function addQueue({ queue: name, isUrgent = false }: Call): Queue {
    const counts = { waiting: 0, inProgress: 0, sharedSlots: 0 }
    const queue = { name, isUrgent, users: new Map(), holders: new Set<string>(), ...counts }
    queues.set(name, queue)
    return queue
  }

  function isFull(queue: Queue): boolean {
    const hasNoSlot = queue.sharedSlots >= shared && queue.holders.size >= limits.reserved
    return inProgress >= limits.inProgress || queue.inProgress >= limits.ofOneQueue || hasNoSlot
  }

  function isUserFull({ sharedSlots, holders }: Queue, user: string): boolean {
    return ofUsers.isFull(user) || (sharedSlots >= shared && holders.has(user))
  }

  function start(turn: Turn): void {
    const { call, queue } = turn
    turn.state = 'inProgress'
    inProgress += 1
    queue.inProgress += 1
    ofUsers.add(call.user)
    ofSessions.add(call.session)
    if (!call.isUploading?.()) takeSlot(turn, queue.sharedSlots >= shared)
    turn.settle?.(true)
  }

  function takeSlot(turn: Turn, isReserved: boolean): void {
    const { call, queue } = turn
    turn.slot = isReserved ? 'reserved' : 'shared'
    if (isReserved) queue.holders.add(call.user)
    else queue.sharedSlots += 1
  }

  function freeSlot(turn: Turn): void {
    const { call, queue, slot } = turn
    turn.slot = 'freed'
    if (slot === 'shared') queue.sharedSlots -= 1
    else if (slot === 'reserved') queue.holders.delete(call.user)
    serve(queue)
  }

  /** Starts the calls of a queue that no limit blocks any longer. */
  function serve(queue: Queue): void {
    while (queue.waiting > 0 && !isFull(queue)) {
      const next = nextTurn(queue)
      if (!next) return
      remove(next)
      moveToEnd(queues, queue.name)
      start(next)
    }
  }

  /** Returns the first call whose user and session may have one more call in progress, and moves both to the end. */
  function nextTurn(queue: Queue): Turn | undefined {
    for (const [user, sessions] of queue.users) {
      if (isUserFull(queue, user)) continue
      for (const [session, [turn]] of sessions) {
        if (ofSessions.isFull(session)) continue
        moveToEnd(sessions, session)
        moveToEnd(queue.users, user)
        return turn
      }
    }
    return undefined
  }

  function add(turn: Turn): void {
    const { call, queue } = turn
    const sessions = queue.users.get(call.user) ?? new Map<string, Set<Turn>>()
    const turns = sessions.get(call.session) ?? new Set()
    queue.users.set(call.user, sessions.set(call.session, turns.add(turn)))
    queue.waiting += 1
    waiting += 1
  }

  function remove(turn: Turn): void {
    const { call, queue } = turn
    const sessions = queue.users.get(call.user)
    const turns = sessions?.get(call.session)
    turns?.delete(turn)
    if (turns?.size === 0) sessions?.delete(call.session)
    if (sessions?.size === 0) queue.users.delete(call.user)
    queue.waiting -= 1
    waiting -= 1
  }

  function giveUp(turn: Turn, outcome: false | QueueError): void {
    remove(turn)
    turn.state = 'over'
    forgetIfEmpty(turn.queue)
    turn.settle?.(outcome)
  }

  function forgetIfEmpty(queue: Queue): void {
    if (queue.inProgress + queue.waiting === 0) queues.delete(queue.name)
  }

  return {
    /** Returns the number of waiting calls. */
    length: () => waiting,
    /**
     * Registers a call, which starts immediately unless a limit blocks it. If its queue is full, the user with the most waiting
     * calls loses the newest of them.
     * @throws QueueError if this call itself is lost
     */
    enter(call: Call): Turn {
      const queue = queues.get(call.queue) ?? addQueue(call)
      const turn: Turn = { call, queue, state: 'waiting', slot: undefined, settle: undefined }
      // A limit blocks each waiting call, so this call does not overtake any of them if it starts now.
      if (!isFull(queue) && !isUserFull(queue, call.user) && !ofSessions.isFull(call.session)) {
        start(turn)
        return turn
      }
      add(turn)
      if (queue.waiting > limits.waiting) {
        const lost = newestOfLargest(queue, turn)
        giveUp(lost, new QueueError('full'))
        if (lost === turn) throw new QueueError('full')
      }
      return turn
    },
    /**
     * Waits until a call has started. Resolves with false if it leaves before. Call this function immediately after `enter`.
     * @param limitMs the time limit in milliseconds
     * @throws QueueError if the time limit is exceeded, or if the call is lost because the queue is full
     */
    wait(turn: Turn, limitMs: number): Promise<boolean> {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp(turn, new QueueError('timeout')), limitMs).unref()
        const settle: Turn['settle'] = outcome => {
          clearTimeout(timer)
          if (outcome instanceof QueueError) reject(outcome)
          else resolve(outcome)
        }
        // If a function literal is assigned to a property, V8 creates the function in the old generation. So assign a variable.
        turn.settle = settle
      })
    },
    /** Call this function when the body of an upload was sent. Other calls do not need it. */
    takeSlot(turn: Turn): void {
      if (turn.state === 'inProgress' && turn.slot === undefined) takeSlot(turn, false)
    },
    /** Call this function when the response has begun. The call stays in progress. */
    freeSlot(turn: Turn): void {
      if (turn.state === 'inProgress' && turn.slot !== 'freed') freeSlot(turn)
    },
    /** Ends a call, also while it waits. Has no effect on a call that has ended. */
    leave(turn: Turn): void {
      const { call, queue, state } = turn
      if (state === 'waiting') giveUp(turn, false)
      if (state !== 'inProgress') return
      if (turn.slot !== 'freed') freeSlot(turn)
      turn.state = 'over'
      inProgress -= 1
      queue.inProgress -= 1
      ofUsers.remove(call.user)
      ofSessions.remove(call.session)
      forgetIfEmpty(queue)
      if (waiting === 0) return
      const [...all] = queues.values()
      for (const other of all.filter(({ isUrgent }) => isUrgent)) serve(other)
      for (const other of all) serve(other)
    }
  }
}

/**
 * Finds the user with the most waiting calls, and the session of this user with the most. Returns the newest call of this session.
 * If there is a tie, prefers the user and the session of `newest`.
 */
function newestOfLargest({ users }: Queue, newest: Turn): Turn {
  let largest = users.get(newest.call.user)
  for (const sessions of users.values()) if (countOf(sessions) > countOf(largest)) largest = sessions
  let turns = largest?.get(newest.call.session)
  for (const others of largest?.values() ?? []) if (others.size > (turns?.size ?? 0)) turns = others
  return [...(turns ?? [])].at(-1) ?? newest
}

function countOf(sessions: ReadonlyMap<string, ReadonlySet<Turn>> | undefined): number {
  let count = 0
  for (const { size } of sessions?.values() ?? []) count += size
  return count
}

function moveToEnd<V>(map: Map<string, V>, key: string): void {
  const value = map.get(key)
  if (value !== undefined && map.delete(key)) map.set(key, value)
}

function createTally(limit: number) {
  const counts = new Map<string, number>()
  return {
    isFull: (key: string) => (counts.get(key) ?? 0) >= limit,
    add: (key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1),
    remove(key: string) {
      const others = (counts.get(key) ?? 0) - 1
      if (others > 0) counts.set(key, others)
      else counts.delete(key)
    }
  }
}
