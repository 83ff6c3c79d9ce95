/** The time limit was exceeded. */
export class TimeLimitError extends Error {}

/** Settles like `promise`, or rejects with TimeLimitError after `ms` milliseconds. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // If this process was paused, the response may be in the socket's buffer but still unread. Node reads it before
    // setImmediate runs.
    const timer = setTimeout(() => setImmediate(() => reject(new TimeLimitError(`not done within ${ms} ms`))), ms)
    promise.then(
      value => {
        clearTimeout(timer)
        resolve(value)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      }
    )
  })
}
