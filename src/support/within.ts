import { type Clock, systemClock } from './clock.js'

/** A time limit was exceeded. */
export class TimeLimitError extends Error {}

/** If the process was suspended, a response may have arrived that Node has not read yet when an overdue timer fires. */
export const LATE_RESPONSE_MS = 100

/**
 * Settles like `promise`, or rejects with TimeLimitError after `ms` milliseconds. A response that arrived in time is used
 * even if the process was suspended and the timer fires first.
 * @example const reply = await within(1000, client.get(key))
 */
export function within<T>(ms: number, promise: Promise<T>, clock: Pick<Clock, 'after'> = systemClock): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel = clock.after(ms, () => {
      cancel = clock.after(LATE_RESPONSE_MS, () => reject(new TimeLimitError(`not done within ${ms} ms`)))
    })
    promise.then(
      value => {
        cancel()
        resolve(value)
      },
      error => {
        cancel()
        reject(error)
      }
    )
  })
}

/** Like `within`, but resolves with undefined at the time limit. */
export async function withinOrUndefined<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | undefined> {
  try {
    return await within(ms, promise, clock)
  } catch (error) {
    if (error instanceof TimeLimitError) return undefined
    throw error
  }
}
