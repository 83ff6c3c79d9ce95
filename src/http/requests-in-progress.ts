import type { IncomingMessage, ServerResponse } from 'node:http'

export interface RequestsInProgress {
  /** Runs the handler of a request and counts it until the handler has ended. */
  run(request: IncomingMessage, response: ServerResponse): void
  /** Resolves when no handler is running. */
  ended(): Promise<void>
}

/**
 * Counts the handlers that are running. A handler goes on after its client has disconnected, because a refresh that it
 * began concerns the whole deployment.
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
    ended() {
      return new Promise(resolve => {
        onAllEnded = resolve
        if (count === 0) resolve()
      })
    }
  }
}
