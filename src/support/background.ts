export type Background = ReturnType<typeof createBackground>

/**
 * Tracks work that continues after the response was sent. The server waits for this work before it shuts down.
 * @example background.add(idp.revokeRefreshToken(refreshToken))
 * await background.ended()
 */
export function createBackground() {
  const pending = new Set<Promise<unknown>>()

  return {
    /** Registers the promise of the work and returns the same promise. */
    add<T>(work: Promise<T>): Promise<T> {
      pending.add(work)
      const remove = () => pending.delete(work)
      work.then(remove, remove)
      return work
    },
    /** Resolves when all registered work has ended. Never rejects. */
    async ended() {
      // Registered work may register more work before it ends.
      while (pending.size > 0) await Promise.allSettled(pending)
    }
  }
}
