/**
 * The place of a process, which proves that an earlier process at the same place has died. A process binds an abstract Unix
 * socket (Linux, unix(7)), which the kernel frees when the process ends in any way, but not while it drains or is stopped. A
 * place is the host name, the boot id, the network namespace and the port, because these decide who can bind the socket.
 */
import { readFileSync, statSync } from 'node:fs'
import net from 'node:net'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { Clock } from '../support/clock.js'

/** `since` is the time at which the process got the socket, in milliseconds on the monotonic clock of the machine. */
export interface Place {
  readonly name: string
  readonly since: number
}

export interface PlaceSocket {
  /** Returns the place, or undefined while this process does not have the socket. */
  current(): Place | undefined
  close(): void
}

const RETRY_MS = 1000
const WARN_AFTER_MS = 60_000

/**
 * Tries to get the socket once a second until it succeeds. On a system without abstract sockets, the process has no place, and
 * its leases end by time.
 * @param onBound called when this process has got the socket
 */
export function bindPlace(
  port: number,
  { clock, log, onBound }: { readonly clock: Clock; readonly log: Pick<Logger, 'warn'>; readonly onBound: () => void }
): PlaceSocket {
  const name = nameOfPlace(port)
  const server = net.createServer(socket => socket.destroy())
  let place: Place | undefined
  let stopRetry = () => {}
  let hasWarned = false
  const startedAt = clock.monotonic()

  server.unref()
  server.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') return
    if (!hasWarned && clock.monotonic() - startedAt >= WARN_AFTER_MS) {
      hasWarned = true
      const message =
        'another process has the same port in this network namespace, so the leases of this one end by time'
      log.warn({ event: 'place_taken', port }, message)
    }
    stopRetry = clock.after(RETRY_MS, bind)
  })
  server.on('listening', () => {
    place = { name: name as string, since: Number(process.hrtime.bigint() / 1_000_000n) }
    onBound()
  })

  function bind(): void {
    // Without `exclusive`, the workers of a cluster would share the socket.
    server.listen({ path: `\0platform-auth-server-${port}`, exclusive: true })
  }

  if (name !== undefined) bind()
  return {
    current: () => place,
    close() {
      place = undefined
      stopRetry()
      server.removeAllListeners('error').on('error', () => {})
      server.close(() => {})
    }
  }
}

/** Returns undefined if the system does not have all parts of the name. */
function nameOfPlace(port: number): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return JSON.stringify([hostname(), bootId, statSync('/proc/self/ns/net').ino, port])
  } catch {
    return undefined
  }
}
