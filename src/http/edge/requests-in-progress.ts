import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Counts the handlers that are running, so that shutdown can wait for them. A handler continues after its client has
 * disconnected, because other requests may need the refresh that it has begun.
 */
export function countRequests(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>) {
  let count = 0
  let onAllEnded = () => {}
  const handlerEnded = () => {
    count -= 1
    if (count === 0) onAllEnded()
  }

  return {
    /** Runs the handler of a request and counts it until the handler has ended. */
    run(request: IncomingMessage, response: ServerResponse) {
      count += 1
      void handle(request, response).then(handlerEnded, handlerEnded)
    },
    /** Returns the number of handlers that are running. */
    count: () => count,
    /** Resolves when no handler is running. */
    ended() {
      return new Promise<void>(resolve => {
        onAllEnded = resolve
        if (count === 0) resolve()
      })
    }
  }
}
