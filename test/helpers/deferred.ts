/** Returns a promise, and the function that resolves it. */
export function createDeferred<T = void>(): [promise: Promise<T>, resolve: (value: T) => void] {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>(given => {
    resolve = given
  })
  return [promise, resolve]
}
