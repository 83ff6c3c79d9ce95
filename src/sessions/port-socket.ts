/**
 * The socket that a process has while it uses a port: an abstract Unix socket (Linux, unix(7)). The kernel frees it when the process
 * ends, even after a crash, but not while the process drains or is suspended.
 */
import cluster from 'node:cluster'
import net from 'node:net'
import type { Logger } from 'pino'
import { type Clock, startStopwatch } from '../base/clock.js'

const RETRY_MS = 1000
const WARN_AFTER_MS = 60_000

export interface PortSocketOptions {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** True if processes coordinate through Redis. */
  readonly hasRedis: boolean
  /** True if this process is a worker of `node:cluster`, as with `pm2 -i`, so that other workers share its port. */
  readonly isWorker?: boolean
}

export function createPortSocket({ clock, log, hasRedis, isWorker = cluster.isWorker }: PortSocketOptions) {
  // Every process of the network namespace can connect to the socket, and none has a reason to.
  const server = net.createServer(connection => connection.destroy())
  let stopRetry = () => {}

  function warn(port: number): void {
    const consequence = hasRedis
      ? 'if this process dies, its leases end only when they expire'
      : 'because redis.url is not set, the two may use the same refresh token, and logins can be lost. Set redis.url, or run one process'
    log.warn(
      { event: 'port_shared', port },
      `another process has the same port in this network namespace; ${consequence}`
    )
  }

  return {
    /** Tries once a second to bind the socket of this port, until an attempt succeeds. Then calls `onBound`. */
    bind(port: number, onBound: () => void): void {
      const elapsedMs = startStopwatch(clock)
      let hasWarned = false
      // Without `exclusive`, the workers of a Node.js cluster would share the socket.
      const listen = () => server.listen({ path: pathOf(port), exclusive: true })
      server.unref()
      server.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return
        // The process that has the socket may be about to end, as in a restart. The other workers of a cluster are not.
        if (!hasWarned && elapsedMs() >= (isWorker && !hasRedis ? 0 : WARN_AFTER_MS)) {
          hasWarned = true
          warn(port)
        }
        stopRetry = clock.after(RETRY_MS, listen)
      })
      server.on('listening', onBound)
      listen()
    },
    close(): void {
      stopRetry()
      server.removeAllListeners('error').on('error', () => {})
      server.close(() => {})
    }
  }
}

function pathOf(port: number): string {
  return `\0platform-auth-server-${port}`
}
