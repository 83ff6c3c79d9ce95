export class TooLateError extends Error {}

/** Rejects with TooLateError unless `promise` settles in time. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // After a pause of this process the answer may lie in the socket unread; what is there by now is read first.
    const timer = setTimeout(() => setImmediate(() => reject(new TooLateError(`not done within ${ms} ms`))), ms)
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
