/**
 * Finds out whether the owner of a lease has died. Other processes must wait as long as it may be alive.
 *
 * Each process binds an abstract Unix socket (Linux, unix(7)). The kernel frees this socket when the process ends, even after a
 * crash, but not while the process drains or is suspended. The *place* of a process is the host name, the boot id, the network
 * namespace and the port, because these decide which processes compete for the same socket. For each place, the store has a cell
 * with the time at which the newest process of this place bound the socket. If that time is later than the time in a lease, the
 * owner of the lease has died.
 *
 * A process that has waited too long for the socket stays connected to it, so that the process that has it can count them.
 */
import cluster from 'node:cluster'
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import net from 'node:net'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Clock, startStopwatch } from '../base/clock.js'
import { apply, type Cells, ignoreUnavailable } from './cells.js'
import type { Lease, Owner } from './transitions.js'

/** `since` is the time at which the process bound the socket, in milliseconds on the monotonic clock of the machine. */
interface Place {
  readonly name: string
  readonly since: number
}

const RETRY_MS = 1000
const WARN_AFTER_MS = 60_000
const COUNT_TIMEOUT_MS = 1000
// Every process of the network namespace can connect to the socket.
const MAX_CONNECTIONS = 1000

interface PlacesOptions {
  readonly cells: Cells<number>
  /** The random name of this process. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** True if processes coordinate through Redis. */
  readonly hasRedis: boolean
  /** True if this process is a worker of `node:cluster`, as with `pm2 -i`, so that other workers share its port. */
  readonly isWorker?: boolean
}

export type Places = ReturnType<typeof createPlaces>

export function createPlaces({ cells, owner, clock, log, hasRedis, isWorker = cluster.isWorker }: PlacesOptions) {
  // The connection of the newcomer counts too, in place of this process. So the number is that of the other processes.
  const server = net.createServer(newcomer => {
    newcomer
      .unref()
      .resume()
      .on('error', () => {})
    server.getConnections((_error, processes) => newcomer.write(String(processes)))
  })
  server.maxConnections = MAX_CONNECTIONS
  /** The connection to the process that has the socket. */
  let waiting: net.Socket | undefined
  /** Undefined until this process has bound the socket. */
  let place: Place | undefined
  let isStarted = false
  let isCopy = false
  let stopRetry = () => {}

  function wait(port: number): void {
    waiting ??= connect(port)
      .unref()
      .on('close', () => {
        waiting = undefined
      })
  }

  function current(): Place | undefined {
    return isCopy ? undefined : place
  }

  /** Stores the time at which this process bound its socket. Never rejects. */
  async function announce(): Promise<void> {
    const announced = current()
    if (!announced) return
    const { name, since } = announced
    const newest = apply(cells, name, stored => {
      if (stored !== undefined && stored >= since) return { result: stored }
      return { result: since, cell: since }
    })
    // A later time in the cell would mean that another process has bound the socket after this process. That is impossible,
    // because this process still has the socket. So the machine must have been reset to a snapshot, and its clock cannot be
    // trusted.
    if (((await newest.catch(ignoreUnavailable)) ?? 0) > since) isCopy = true
  }

  return {
    /**
     * Returns the `Owner` that this process writes into its leases. If this process has not bound the socket, the owner has no
     * place.
     */
    me(): Owner {
      const bound = current()
      return bound ? { owner, place: bound.name, since: bound.since } : { owner }
    },
    /**
     * Tries once a second to bind the socket of this port, until an attempt succeeds. Call this function when the server listens
     * on its port. On a system without abstract sockets, the process has no place. If such a process dies, its leases end only
     * when they expire.
     */
    start(port: number): void {
      const name = nameOfPlace(port)
      if (isStarted || name === undefined) return
      isStarted = true
      const elapsedMs = startStopwatch(clock)
      let hasWarned = false
      // Without `exclusive`, the workers of a Node.js cluster would share the socket.
      const bind = () => server.listen({ path: socketOf(port), exclusive: true })
      server.unref()
      server.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return
        // The process that has the socket may be about to end, as in a restart. The other workers of a cluster are not.
        if (!hasWarned && elapsedMs() >= (isWorker && !hasRedis ? 0 : WARN_AFTER_MS)) {
          hasWarned = true
          const consequence = hasRedis
            ? 'if this process dies, its leases end only when they expire'
            : 'because redis.url is not set, the two may use the same refresh token, and logins can be lost. Set redis.url, or run one process'
          log.warn(
            { event: 'port_shared', port },
            `another process has the same port in this network namespace; ${consequence}`
          )
        }
        if (hasWarned) wait(port)
        stopRetry = clock.after(RETRY_MS, bind)
      })
      server.on('listening', () => {
        place = { name, since: Number(process.hrtime.bigint() / 1_000_000n) }
        waiting?.destroy()
        void announce()
      })
      bind()
    },
    /** Also call this function after each new connection, because Redis may have lost the start time of this process. */
    announce,
    /**
     * True if the owner of the lease has died, because a later process has bound the socket at the same place. Returns false if
     * the cell of the place cannot be decrypted, because such a cell proves nothing.
     * @throws StoreUnavailableError
     */
    async isDead({ place, since }: Lease): Promise<boolean> {
      if (place === undefined || since === undefined) return false
      const { content } = await cells.read(place, true)
      return content !== undefined && content > since
    },
    close(): void {
      place = undefined
      stopRetry()
      waiting?.destroy()
      server.removeAllListeners('error').on('error', () => {})
      server.close(() => {})
    }
  }
}

/**
 * Returns the number of processes of this server that share the port in this network namespace, or 0 if there is none. A process
 * counts when it has warned about the others. On a system without abstract sockets, the number is always 0.
 */
export async function countProcesses(port: number): Promise<number> {
  if (process.platform !== 'linux') return 0
  const socket = connect(port).setTimeout(COUNT_TIMEOUT_MS, () => socket.destroy())
  const answer = await new Promise<unknown>(resolve => socket.once('data', resolve).once('close', () => resolve(0)))
  socket.destroy()
  return Number(answer)
}

function connect(port: number): net.Socket {
  return net
    .connect(socketOf(port))
    .resume()
    .on('error', () => {})
}

function socketOf(port: number): string {
  return `\0platform-auth-server-${port}`
}

/**
 * Returns the name of the place: a hash of the host name, the boot id, the network namespace and the port. Returns undefined if
 * the system lacks one of them.
 */
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
