export type ShutdownHooks = ReturnType<typeof createShutdownHooks>

/**
 * Keeps the actions that the parts of the server register for its shutdown.
 * @example const removeHook = hooks.onStop(() => stream.end())
 */
export function createShutdownHooks() {
  const stopActions = new Set<() => void>()
  const closeActions: (() => Promise<void>)[] = []
  let isStopping = false

  return {
    /**
     * Registers an action for the beginning of the shutdown. If the shutdown has already begun, the action runs at once.
     * Returns a function that removes the action.
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
