import type { IncomingMessage, ServerResponse } from 'node:http'

export interface RequestsInProgress {
  /** Runs the handler of a request and counts it until the handler has ended. */
  run(request: IncomingMessage, response: ServerResponse): void
  /** Returns the number of handlers that are running. */
  count(): number
  /** Resolves when no handler is running. */
  ended(): Promise<void>
}

/**
 * Counts the handlers that are running, so that shutdown can wait for them. A handler continues after its client has
 * disconnected, because other requests may need the refresh that it has begun.
 */
export function countRequests(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>
): RequestsInProgress {
  let count = 0
  let onAllEnded = () => {}
  const handlerEnded = () => {
    count -= 1
    if (count === 0) onAllEnded()
  }

  return {
    run(request, response) {
      count += 1
      void handle(request, response).then(handlerEnded, handlerEnded)
    },
    count: () => count,
    ended() {
      return new Promise(resolve => {
        onAllEnded = resolve
        if (count === 0) resolve()
      })
    }
  }
}
