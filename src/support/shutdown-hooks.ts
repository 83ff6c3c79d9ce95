/** The actions that the parts of the server register for its shutdown. */
export interface ShutdownHooks {
  /**
   * Registers an action for the beginning of the shutdown. If the shutdown has already begun, the action runs at once.
   * Returns a function that removes the action.
   */
  onStop(action: () => void): () => void
  /** Registers an action for the end of the shutdown, after the last request. */
  onClose(action: () => Promise<void>): void
  /** Runs the actions that were registered with `onStop`. */
  stop(): void
  /** Runs the actions that were registered with `onClose`, and resolves when all of them have ended. */
  close(): Promise<void>
}

/** @example const removeHook = hooks.onStop(() => stream.end()) */
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
