/**
 * Finds out if the owner of a lease has died. A process binds an abstract Unix socket (Linux, unix(7)), which the kernel frees
 * when the process ends in any way, but not while it drains or is stopped. The place of a process is the host name, the boot
 * id, the network namespace and the port, because these decide who can bind the socket. Each place has a cell with the time at
 * which its newest process got the socket.
 */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import net from 'node:net'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Clock, startStopwatch } from '../support/clock.js'
import { apply, type Cells, ignoreUnavailable } from './cells.js'
import type { Lease, Owner } from './rules.js'

/** `since` is the time at which the process got the socket, in milliseconds on the monotonic clock of the machine. */
interface Place {
  readonly name: string
  readonly since: number
}

const RETRY_MS = 1000
const WARN_AFTER_MS = 60_000

interface PlacesOptions {
  readonly cells: Cells<number>
  /** The random name of this process. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}

export type Places = ReturnType<typeof createPlaces>

export function createPlaces({ cells, owner, clock, log }: PlacesOptions) {
  const server = net.createServer(socket => socket.destroy())
  /** Undefined while this process does not have the socket. */
  let place: Place | undefined
  let isStarted = false
  let isCopy = false
  let stopRetry = () => {}

  function current(): Place | undefined {
    return isCopy ? undefined : place
  }

  /** Stores the time at which this process got its socket. Never rejects. */
  async function announce(): Promise<void> {
    const announced = current()
    if (!announced) return
    const { name, since } = announced
    const newest = apply(cells, name, stored => {
      if (stored !== undefined && stored >= since) return { result: stored }
      return { result: since, cell: since }
    })
    // A larger number means that this machine was reset to a snapshot, so its clock proves nothing.
    if (((await newest.catch(ignoreUnavailable)) ?? 0) > since) isCopy = true
  }

  return {
    /** Returns the name of this process in a lease. Without the socket, it names no place. */
    me(): Owner {
      const own = current()
      return own ? { owner, place: own.name, since: own.since } : { owner }
    },
    /**
     * Tries to get the socket of this port, once a second until it succeeds. Call it when the server has its port. On a system
     * without abstract sockets, the process has no place, and its leases end by time.
     */
    start(port: number): void {
      const name = nameOfPlace(port)
      if (isStarted || name === undefined) return
      isStarted = true
      const elapsedMs = startStopwatch(clock)
      let hasWarned = false
      // Without `exclusive`, the workers of a cluster would share the socket.
      const bind = () => server.listen({ path: `\0platform-auth-server-${port}`, exclusive: true })
      server.unref()
      server.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return
        if (!hasWarned && elapsedMs() >= WARN_AFTER_MS) {
          hasWarned = true
          const message =
            'another process has the same port in this network namespace, so the leases of this one end by time'
          log.warn({ event: 'place_taken', port }, message)
        }
        stopRetry = clock.after(RETRY_MS, bind)
      })
      server.on('listening', () => {
        place = { name, since: Number(process.hrtime.bigint() / 1_000_000n) }
        void announce()
      })
      bind()
    },
    /** Call it also after each connection. */
    announce,
    /**
     * True if a later process has the place of the owner of this lease.
     * @throws StoreUnavailableError, unless the cell of the place cannot be read, which proves nothing
     */
    async isDead({ place, since }: Lease): Promise<boolean> {
      if (place === undefined || since === undefined) return false
      const { content } = await cells.read(place, true)
      return content !== undefined && content > since
    },
    close(): void {
      place = undefined
      stopRetry()
      server.removeAllListeners('error').on('error', () => {})
      server.close(() => {})
    }
  }
}

/** Returns the hash of the name. Returns undefined if the system does not have all components of the name. */
function nameOfPlace(port: number): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const name = JSON.stringify([hostname(), bootId, statSync('/proc/self/ns/net').ino, port])
    return createHash('sha256').update(name).digest('base64url').slice(0, 22)
  } catch {
    return undefined
  }
}
