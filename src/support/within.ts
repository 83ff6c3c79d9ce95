/** A time limit was exceeded. */
export class TimeLimitError extends Error {}

/** Settles like `promise`, or rejects with TimeLimitError after `ms` milliseconds. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // If this process was suspended, a response may have arrived that Node has not read yet. Node reads it before the
    // callback of setImmediate runs, so the promise can still resolve.
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
