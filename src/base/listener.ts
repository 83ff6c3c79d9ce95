/** Opens and closes the ports of the HTTP servers in this process. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ListenOptions {
  /** With 0, the system chooses a free port. */
  readonly port: number
  /** Without a host, the server listens on all IP addresses of the machine. */
  readonly host?: string | undefined
  /** A server that already listens on the port. The new server takes the port over from it. */
  readonly reserved?: Server | undefined
  /**
   * The value of the `listener` property of an error. It tells the caller which of several ports could not be opened.
   */
  readonly listener?: string
}

// After a restart, all pages connect again at the same moment. If only 511 connections could wait, which is Node's
// default, some pages would have to retry.
const BACKLOG = 2048

/**
 * Starts listening, and returns the port. Rejects with Node's error (`EADDRINUSE`, `EACCES`, …) if the port cannot be
 * opened.
 * @example const port = await listen(server, { port: 9464, host: '127.0.0.1', listener: 'metrics' })
 */
export function listen(server: Server, { port, host, reserved, listener }: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(listener === undefined ? error : Object.assign(error, { listener }))
    server.once('error', fail)
    const succeed = () => {
      server.off('error', fail)
      resolve((server.address() as AddressInfo).port)
    }
    if (reserved) server.listen(reserved, BACKLOG, succeed)
    else server.listen({ port, host, backlog: BACKLOG }, succeed)
  })
}

/**
 * Stops accepting connections, and closes idle connections. Resolves when all requests have ended. After `graceMs`
 * milliseconds, destroys the connections that are still open.
 */
export function closeServer(server: Server, graceMs = 0): Promise<void> {
  return new Promise(resolve => {
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(deadline)
      resolve()
    })
  })
}
