/** What has to happen when the server stops, said by the parts that it concerns. */
export interface Ending {
  /** Runs `action` when the server begins to stop, or at once if it has. Returns a function that takes it back. */
  onStop(action: () => void): () => void
  /** Runs `action` after the last request has ended. */
  onClose(action: () => Promise<void>): void
  stop(): void
  close(): Promise<void>
}

export function createEnding(): Ending {
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
