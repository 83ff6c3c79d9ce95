/** The pause after a refresh that failed. Without it, a thousand waiting pages would become a thousand provider calls. */
export const SHORTEST_PAUSE_SECONDS = 1
const LONGEST_PAUSE_SECONDS = 60

/** Returns the provider's own `Retry-After` in seconds, if the error has one, limited to 1 to 60 seconds. */
export function pauseSecondsAfter(error: unknown): number {
  const { retryAfterSeconds = SHORTEST_PAUSE_SECONDS } = error as { readonly retryAfterSeconds?: number | undefined }
  return Math.min(LONGEST_PAUSE_SECONDS, Math.max(SHORTEST_PAUSE_SECONDS, retryAfterSeconds))
}

/**
 * True if the pause that ends at `retryAt` is not over.
 * @param retryAt milliseconds since the epoch, like `now`
 */
export function isPausing(retryAt: number, now: number): boolean {
  // A longer pause than the longest was stored before the clock was set back.
  return now < retryAt && retryAt - now <= LONGEST_PAUSE_SECONDS * 1000
}
