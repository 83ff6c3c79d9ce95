/** The pause after a failed refresh. Without a pause, every waiting page would cause another call to the provider. */
export const SHORTEST_PAUSE_SECONDS = 1
const LONGEST_PAUSE_SECONDS = 60

/** Returns the provider's `Retry-After` in seconds, but at least 1 and at most 60. Returns 1 if the error has none. */
export function pauseSecondsAfter(error: unknown): number {
  const { retryAfterSeconds = SHORTEST_PAUSE_SECONDS } = error as { readonly retryAfterSeconds?: number | undefined }
  return Math.min(LONGEST_PAUSE_SECONDS, Math.max(SHORTEST_PAUSE_SECONDS, retryAfterSeconds))
}

/**
 * True if the pause that ends at `retryAt` is not over yet.
 * @param retryAt milliseconds since the epoch, like `now`
 */
export function isPausing(retryAt: number, now: number): boolean {
  // If the remaining pause is longer than the maximum, the clock was set back after the pause was stored. The pause is
  // then ignored.
  return now < retryAt && retryAt - now <= LONGEST_PAUSE_SECONDS * 1000
}
