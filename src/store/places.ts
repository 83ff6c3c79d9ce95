/** Finds out if the owner of a lease has died. Each place has a cell with the time at which its newest process began. */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../support/clock.js'
import { apply, type Cells, ignoreUnavailable } from './cells.js'
import { bindPlace, type Place, type PlaceSocket } from './place.js'
import type { Lease, Owner } from './rules.js'

export type PlaceCells = Cells<number>

export interface PlacesParts {
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
