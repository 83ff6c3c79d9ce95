import { CoordinationError } from './coordination.js'

/**
 * Makes sure that this process runs the work for a key only once at a time. Callers with the same key share the run.
 */
export interface SingleFlight {
  /**
   * Waits for the current run for `key` and returns its result. If there is none, starts `work` as a new run. A run
   * continues even if all of its callers stop waiting.
   * @throws CoordinationError `pending` if the run takes longer than `answerMs`
   */
  run<T>(key: string, work: () => Promise<T>): Promise<{ readonly value: T; readonly how: 'ran' | 'joined' }>
  isRunning(key: string): boolean
  /** Resolves when all runs have ended. Never rejects. */
  idle(): Promise<void>
}

interface Flight {
  readonly result: Promise<unknown>
  /** The promise that callers get. It settles like `result`, but rejects if the time limit is exceeded. */
  readonly answer: Promise<unknown>
}

/** @param answerMs the time limit for callers, in milliseconds since the start of the run */
export function createSingleFlight(answerMs: number): SingleFlight {
  const flights = new Map<string, Flight>()

  function start(key: string, work: () => Promise<unknown>): Flight {
    const result = startAsync(work)
    const answer = withTimeLimit(result, answerMs)
    const flight = { result, answer }
    flights.set(key, flight)
    const remove = () => flights.delete(key)
    result.then(remove, remove)
    // All callers may have stopped waiting when the run fails. This handler prevents an unhandled rejection.
    answer.catch(() => {})
    return flight
  }

  return {
    async run<T>(key: string, work: () => Promise<T>) {
      const current = flights.get(key)
      const { answer } = current ?? start(key, work)
      return { value: (await answer) as T, how: current ? ('joined' as const) : ('ran' as const) }
    },
    isRunning: key => flights.has(key),
    async idle() {
      while (flights.size > 0) await Promise.allSettled([...flights.values()].map(({ result }) => result))
    }
  }
}

// An async function turns an exception that `work` throws synchronously into a rejection.
async function startAsync<T>(work: () => Promise<T>): Promise<T> {
  return work()
}

function withTimeLimit<T>(result: Promise<T>, ms: number): Promise<T> {
  if (!Number.isFinite(ms)) return result
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new CoordinationError('pending', 2)), ms)
    const stop = () => clearTimeout(timer)
    result.then(stop, stop)
    result.then(resolve, reject)
  })
}
