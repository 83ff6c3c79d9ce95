/** Lets the parts of a server register what they have to do when it shuts down. */
export interface ShutdownHooks {
  /**
   * Runs `action` when shutdown begins. Runs it at once if shutdown has begun already. Returns a function that removes the
   * hook.
   */
  onStop(action: () => void): () => void
  /** Runs `action` after the last request has ended. */
  onClose(action: () => Promise<void>): void
  /** Runs the actions of `onStop`. */
  stop(): void
  /** Runs the actions of `onClose` and resolves when all of them have ended. */
  close(): Promise<void>
}

export function createShutdownHooks(): ShutdownHooks {
  const stopActions = new Set<() => void>()
  const closeActions: (() => Promise<void>)[] = []
  let isStopping = false

  return {
    onStop(action) {
      if (isStopping) action()
      else stopActions.add(action)
      return () => stopActions.delete(action)
    },
    onClose: action => void closeActions.push(action),
    stop() {
      isStopping = true
      for (const action of stopActions) action()
      stopActions.clear()
    },
    async close() {
      await Promise.all(closeActions.map(action => action()))
    }
  }
}
