/**
 * Keeps the time limits of Node from counting a time in which the process was stopped, for example by SIGSTOP or because its
 * container was frozen. Node compares the age of a connection with `headersTimeout` and `requestTimeout` as soon as the process
 * continues, and only then reads what has arrived meanwhile. Complete requests would therefore get 408.
 */
import type { Server } from 'node:http'

/** All times are milliseconds. */
export interface ArrivalLimits {
  readonly headersTimeout: number
  /** 0 for no limit. */
  readonly requestTimeout: number
  /** The time between two checks of Node. */
  readonly connectionsCheckingInterval: number
}

/**
 * Call this before the server listens. Before each check of Node, the limits of the server are set to the time in which Node has
 * made the checks of the limit, and one more check: the process may have been stopped since the last check. A client therefore
 * has at least the given time, and if the process was not stopped, at most one interval more than without this function.
 */
export function ignoreStops(server: Server, limits: ArrivalLimits): void {
  const { headersTimeout, requestTimeout, connectionsCheckingInterval } = limits
  const checksIn = (ms: number) => Math.ceil(ms / connectionsCheckingInterval) + 1
  const kept = checksIn(Math.max(headersTimeout, requestTimeout))
  const checkedAt: number[] = []
  const sinceCheck = (count: number, now: number) => Math.ceil(now - (checkedAt.at(-count) ?? checkedAt[0] ?? now))

  function setLimits() {
    const now = performance.now()
    server.headersTimeout = Math.max(headersTimeout, sinceCheck(checksIn(headersTimeout), now))
    if (requestTimeout > 0) server.requestTimeout = Math.max(requestTimeout, sinceCheck(checksIn(requestTimeout), now))
    checkedAt.push(now)
    if (checkedAt.length > kept) checkedAt.shift()
  }

  // Node starts its own timer in a later listener of the same event. Timers of the same length run in the order in which they
  // were started, so this one runs first.
  server.prependListener('listening', () => {
    checkedAt.push(performance.now())
    const timer = setInterval(setLimits, connectionsCheckingInterval)
    timer.unref()
    server.once('close', () => clearInterval(timer))
  })
}
