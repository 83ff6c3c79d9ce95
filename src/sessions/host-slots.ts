/**
 * Finds out whether the owner of a lease has died. Other processes must wait as long as it may be alive.
 *
 * Each process binds a socket (`port-socket.ts`). Its *host slot* is the host name, the boot id, the network namespace and the port,
 * because these decide which processes compete for the same socket. For each host slot, the store has the time at which its newest
 * process bound the socket. If that time is later than the time in a lease, the owner of the lease has died.
 */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { ignoreUnavailable, type Values } from './cells.js'
import { createPortSocket, type PortSocketOptions } from './port-socket.js'
import type { Lease, Owner } from './transitions.js'

interface HostSlotsOptions extends PortSocketOptions {
  readonly cells: Values<number>
  /** The random name of this process. */
  readonly owner: string
}

export type HostSlots = ReturnType<typeof createHostSlots>

export function createHostSlots({ cells, owner, ...options }: HostSlotsOptions) {
  const socket = createPortSocket(options)
  /**
   * Undefined until this process has bound the socket. `since` is the time at which it did so, in milliseconds on the monotonic clock
   * of the machine.
   */
  let bound: Required<Owner> | undefined
  let isStarted = false

  /**
   * Stores the time at which this process bound its socket. Also call this function after each new connection, because Redis may have
   * lost this time. Never rejects.
   */
  async function announce(): Promise<void> {
    if (!bound) return
    const { hostSlot, since } = bound
    const newest = cells.change(hostSlot, stored => {
      if (stored !== undefined && stored >= since) return { result: stored }
      return { result: since, cell: since }
    })
    // A later time in the cell would mean that another process has bound the socket after this process. That is impossible,
    // because this process still has the socket. So the machine must have been reset to a snapshot, and its clock cannot be
    // trusted.
    if (((await newest.catch(ignoreUnavailable)) ?? 0) > since) bound = undefined
  }

  return {
    /** Returns the `Owner` that this process writes into its leases. If it has not bound the socket, the owner has no host slot. */
    me: (): Owner => bound ?? { owner },
    /**
     * Tries once a second to bind the socket of this port, until an attempt succeeds. Call this function when the server listens on
     * its port. On a system without abstract sockets, the process has no host slot. If such a process dies, its leases end only when
     * they expire.
     */
    start(port: number): void {
      const hostSlot = nameOfHostSlot(port)
      if (isStarted || hostSlot === undefined) return
      isStarted = true
      socket.bind(port, () => {
        bound = { owner, hostSlot, since: Number(process.hrtime.bigint() / 1_000_000n) }
        void announce()
      })
    },
    announce,
    /**
     * True if the owner of the lease has died, because a later process has bound the socket at the same host slot.
     * @throws StoreUnavailableError
     */
    async isDead({ hostSlot, since }: Lease): Promise<boolean> {
      if (hostSlot === undefined || since === undefined) return false
      const newest = await cells.read(hostSlot)
      return newest !== undefined && newest > since
    },
    close(): void {
      bound = undefined
      socket.close()
    }
  }
}

/**
 * Returns the name of the host slot: a hash of the host name, the boot id, the network namespace and the port. Returns undefined if
 * the system lacks one of them.
 */
function nameOfHostSlot(port: number): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const name = JSON.stringify([hostname(), bootId, statSync('/proc/self/ns/net').ino, port])
    return createHash('sha256').update(name).digest('base64url').slice(0, 22)
  } catch {
    return undefined
  }
}
