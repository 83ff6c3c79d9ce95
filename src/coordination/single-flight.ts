import { CoordinationError } from './coordination.js'

/** Work of which one run per key is under way in this process at a time. Callers with the same key share the run. */
export interface SingleFlight {
  /**
   * Starts `work`, or joins the run that is under way for `key`. The run goes on when its callers have given up.
   * @throws CoordinationError `pending` when the run has lasted longer than the time a request may wait
   */
  run<T>(key: string, work: () => Promise<T>): Promise<{ readonly value: T; readonly how: 'ran' | 'joined' }>
  isRunning(key: string): boolean
  /** Resolves when nothing is running, whatever came of it. */
  idle(): Promise<void>
}

interface Flight {
  readonly result: Promise<unknown>
  /** Settles like `result`, or rejects when the time limit has passed. */
  readonly answer: Promise<unknown>
}

/** @param answerMs how long a request may wait for a run, in milliseconds since the run began */
export function createSingleFlight(answerMs: number): SingleFlight {
  const flights = new Map<string, Flight>()

  function start(key: string, work: () => Promise<unknown>): Flight {
    const result = begin(work)
    const answer = withTimeLimit(result, answerMs)
    const flight = { result, answer }
    flights.set(key, flight)
    const remove = () => flights.delete(key)
    result.then(remove, remove)
    // Callers may all have gone when the run fails.
    answer.catch(() => {})
    return flight
  }

  return {
    async run<T>(key: string, work: () => Promise<T>) {
      const running = flights.get(key)
      const { answer } = running ?? start(key, work)
      return { value: (await answer) as T, how: running ? ('joined' as const) : ('ran' as const) }
    },
    isRunning: key => flights.has(key),
    async idle() {
      while (flights.size > 0) await Promise.allSettled([...flights.values()].map(({ result }) => result))
    }
  }
}

// An exception before the first `await` of the work is a failure of the run like any other.
async function begin<T>(work: () => Promise<T>): Promise<T> {
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
