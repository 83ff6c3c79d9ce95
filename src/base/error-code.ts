import { types } from 'node:util'

/**
 * True for every error, also for an error of another realm. Jest, and Vitest with `vmThreads`, run this package in a separate
 * realm, in which the errors of Node are not instances of `Error`.
 */
export function isError(thrown: unknown): thrown is Error {
  return types.isNativeError(thrown) || thrown instanceof Error
}

/** Returns the code of an error, such as `ENOENT`. Returns undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  return isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
