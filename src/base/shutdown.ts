/** The work and the actions that a server completes before its process ends. */

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

export type ShutdownHooks = ReturnType<typeof createShutdownHooks>

/**
 * Keeps the actions that features register for the shutdown of the server.
 * @example const removeHook = hooks.onStop(() => stream.end())
 */
export function createShutdownHooks() {
  const stopActions = new Set<() => void>()
  const closeActions: (() => Promise<void>)[] = []
  let isStopping = false

  return {
    /**
     * Registers an action for the beginning of the shutdown. If the shutdown has already begun, the action runs
     * immediately. Returns a function that removes the action.
     */
    onStop(action: () => void): () => void {
      if (isStopping) action()
      else stopActions.add(action)
      return () => stopActions.delete(action)
    },
    /** Registers an action for the end of the shutdown, after the last request. */
    onClose: (action: () => Promise<void>) => void closeActions.push(action),
    /** Runs the actions that were registered with `onStop`. */
    stop() {
      isStopping = true
      for (const action of stopActions) action()
      stopActions.clear()
    },
    /** Runs the actions that were registered with `onClose`, and resolves when all of them have ended. */
    async close() {
      await Promise.all(closeActions.map(action => action()))
    }
  }
}
