// The simulated time, and the processes that live in it. One seed determines everything that happens.
import type { Clock } from '#src/base/clock.js'
import { createRandom } from '../helpers/random.js'

export interface World {
  /** Milliseconds since the epoch. */
  now(): number
  /** Returns the next pseudo-random number in [0, 1). */
  random(): number
  /** Returns a pseudo-random number between the two. */
  between(from: number, to: number): number
  /** Calls `action` after `ms` milliseconds. If it belongs to a process, it waits while that process is stopped. */
  after(ms: number, action: () => void, owner?: Owner): () => void
  /** Runs all events of the next `ms` milliseconds. */
  run(ms: number): Promise<void>
  createProcess(name: string): SimulatedProcess
  /** Adds a line to the schedule that a failing seed prints. */
  note(text: string): void
  readonly notes: readonly string[]
}

interface Owner {
  readonly process: SimulatedProcess
  readonly kind: 'timer' | 'input'
}

export interface SimulatedProcess {
  readonly name: string
  readonly clock: Clock
  isAlive: boolean
  isStopped: boolean
  /** Ends the process. Everything that it waits for is lost. */
  kill(): void
  /** Stops the process as SIGSTOP does. With `suspends`, also its monotonic clock stops, as that of a virtual machine. */
  stop(suspends: boolean): void
  /** Continues the process. As in Node, overdue timers fire before input is read. */
  resume(): void
}

interface Event {
  time: number
  order: number
  readonly action: () => void
  readonly owner: Owner | undefined
  isCancelled: boolean
}

const START = 1_700_000_000_000

export function createWorld(seed: number): World {
  let time = START
  let order = 0
  const random = createRandom(seed * 2_654_435_761 + 1)
  const notes: string[] = []
  const queue = createQueue()

  function after(ms: number, action: () => void, owner?: Owner): () => void {
    const event: Event = { time: time + Math.max(0, ms), order: order++, action, owner, isCancelled: false }
    queue.push(event)
    return () => {
      event.isCancelled = true
    }
  }

  function createProcess(name: string): SimulatedProcess {
    let suspendedMs = 0
    let stoppedAt = 0
    let isSuspended = false
    const backlog: Event[] = []
    const process: SimulatedProcess = {
      name,
      isAlive: true,
      isStopped: false,
      clock: {
        now: () => time,
        monotonic: () => time - suspendedMs - START,
        after: (ms, action) => after(ms, action, { process, kind: 'timer' })
      },
      kill() {
        process.isAlive = false
      },
      stop(suspends) {
        process.isStopped = true
        isSuspended = suspends
        stoppedAt = time
      },
      resume() {
        process.isStopped = false
        const stoppedMs = time - stoppedAt
        if (isSuspended) suspendedMs += stoppedMs
        const isTimer = ({ owner }: Event) => owner?.kind === 'timer'
        const isOverdue = (event: Event) => isTimer(event) && event.time <= time
        // The timers of a suspended machine have stood still, too.
        if (isSuspended) queue.delayTimers(process, stoppedMs)
        const waiting = backlog.splice(0)
        if (isSuspended) for (const event of waiting) if (isTimer(event)) event.time += stoppedMs
        for (const event of [...waiting.filter(isOverdue), ...waiting.filter(event => !isOverdue(event))]) {
          event.time = Math.max(time, event.time)
          event.order = order++
          queue.push(event)
        }
      }
    }
    backlogs.set(process, backlog)
    return process
  }

  const backlogs = new Map<SimulatedProcess, Event[]>()

  return {
    now: () => time,
    random,
    between: (from, to) => from + random() * (to - from),
    after,
    async run(ms) {
      const end = time + ms
      for (let event = queue.next(end); event; event = queue.next(end)) {
        time = Math.max(time, event.time)
        if (event.isCancelled) continue
        const process = event.owner?.process
        if (process && !process.isAlive) continue
        if (process?.isStopped) {
          backlogs.get(process)?.push(event)
          continue
        }
        event.action()
        await settle()
      }
      time = end
    },
    createProcess,
    note: text => void notes.push(`${((time - START) / 1000).toFixed(3)} s: ${text}`),
    notes
  }
}

/** Resolves when all promise reactions have run. */
function settle(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** The events that are still to happen. The next one is the last one of the list. */
function createQueue() {
  const events: Event[] = []
  const isBefore = (a: Event, b: Event) => a.time < b.time || (a.time === b.time && a.order < b.order)

  function push(event: Event): void {
    events.splice(events.findLastIndex(other => isBefore(event, other)) + 1, 0, event)
  }

  return {
    push,
    delayTimers(process: SimulatedProcess, ms: number) {
      for (const event of events.splice(0)) {
        if (event.owner?.process === process && event.owner.kind === 'timer') event.time += ms
        push(event)
      }
    },
    /** Removes and returns the first event that is not later than `end`. */
    next(end: number): Event | undefined {
      const next = events.at(-1)
      return next && next.time <= end ? events.pop() : undefined
    }
  }
}
