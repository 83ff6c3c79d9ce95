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
import type { Clock } from '../support/clock.js'
import { apply, type Cells, ignoreUnavailable } from './cells.js'
import type { Lease, Owner } from './rules.js'

/** `since` is the time at which the process got the socket, in milliseconds on the monotonic clock of the machine. */
interface Place {
  readonly name: string
  readonly since: number
}

interface PlaceSocket {
  /** Returns the place, or undefined while this process does not have the socket. */
  current(): Place | undefined
  close(): void
}

const RETRY_MS = 1000
const WARN_AFTER_MS = 60_000

type PlaceCells = Cells<number>

interface PlacesParts {
  readonly cells: PlaceCells
  /** The random name of this process. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}

export type Places = ReturnType<typeof createPlaces>

export function createPlaces({ cells, owner, clock, log }: PlacesParts) {
  let socket: PlaceSocket | undefined
  let isCopy = false

  function current(): Place | undefined {
    return isCopy ? undefined : socket?.current()
  }

  /** Stores the time at which this process got its socket. Never rejects. */
  async function announce(): Promise<void> {
    const place = current()
    if (!place) return
    const newest = apply(cells, hashOf(place.name), since => {
      if (since !== undefined && since >= place.since) return { result: since }
      return { result: place.since, cell: place.since }
    })
    // A larger number means that this machine was reset to a snapshot, so its clock proves nothing.
    if (((await newest.catch(ignoreUnavailable)) ?? 0) > place.since) isCopy = true
  }

  return {
    /** Returns the name of this process in a lease. Without the socket, it names no place. */
    me(): Owner {
      const place = current()
      return place ? { owner, place: hashOf(place.name), since: place.since } : { owner }
    },
    /** Gets the socket of the place of this port. Call it when the server has its port. */
    start(port: number): void {
      socket ??= bindPlace(port, { clock, log, onBound: () => void announce() })
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
    close: (): void => socket?.close()
  }
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 22)
}

/**
 * Tries to get the socket once a second until it succeeds. On a system without abstract sockets, the process has no place, and
 * its leases end by time.
 * @param onBound called when this process has got the socket
 */
function bindPlace(
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
