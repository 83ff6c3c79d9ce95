/** The store in the memory of this process, for a server without Redis. It is lost when the process ends. */
import { createExpiringMap } from '../base/expiring-map.js'
import { type Cells, type Snapshot, StoreUnavailableError, type Values } from './cells.js'
import { type Cell, type Entry, isLogin } from './transitions.js'

/** The object is the version of the cell. */
interface Version {
  readonly entry: Entry
}

interface Limits {
  readonly cells?: number
  readonly logins?: number
  readonly records?: number
}

// A session without its record needs about 1 kB, so this many cells need 200 MB.
const MAX_CELLS = 200_000
const MAX_RECORDS = 10_000
// The provider needs time for each code, and at most 64 codes are sent to it in parallel (`provider/transport.ts`), so a login has
// ended long before this many later logins have begun.
const MAX_LOGINS = 50_000

/**
 * Creates the cells of sessions.
 * @param now returns milliseconds since the epoch
 * @param limits `cells` is the maximum number of sessions. At this limit, a change with `mayFail` is refused if it needs a new cell.
 *   Above the other limits, the oldest ones are dropped:
 * - `records`: Records are larger than entries. A request with an outdated cookie of a session without its record no longer gets
 *   the newest tokens.
 * - `logins`: Anybody can create the cell of a login by sending a made-up code, so they never take room from sessions, and a new
 *   login is never refused because there are too many of them.
 */
export function createMemoryCells<Record extends NonNullable<unknown>>(
  now: () => number,
  lifetimeMs: (cell: Cell<Record>) => number,
  limits: Limits = {}
): Cells<Cell<Record>, { readonly id: string }> {
  const sessions = createExpiringMap<Version>(Number.POSITIVE_INFINITY, now)
  const logins = createExpiringMap<Version>(limits.logins ?? MAX_LOGINS, now)
  const records = createExpiringMap<Record>(limits.records ?? MAX_RECORDS, now)

  function snapshotOf(id: string): Snapshot<Cell<Record>> {
    const version = sessions.get(id) ?? logins.get(id)
    if (!version) return { version, content: undefined }
    const { entry } = version
    const record = entry.hasRecord ? records.get(id) : undefined
    return { version, content: { entry: { ...entry, hasRecord: record !== undefined }, record } }
  }

  function store(id: string, next: Cell<Record>): void {
    const { entry, record } = next
    const ttlMs = lifetimeMs(next)
    if (isLogin(entry)) logins.set(id, { entry }, ttlMs)
    else {
      logins.delete(id)
      sessions.set(id, { entry }, ttlMs)
    }
    if (!entry.hasRecord) records.delete(id)
    else if (record !== undefined) records.set(id, record, ttlMs)
  }

  return {
    now,
    read: async ({ id }) => snapshotOf(id),
    async swap({ id }, expected, next, { mayFail }) {
      const current = snapshotOf(id)
      if (current.version !== expected.version) return { isDone: false, snapshot: current }
      const isFull = sessions.size >= (limits.cells ?? MAX_CELLS)
      if (mayFail && isFull && !current.content) throw new StoreUnavailableError('full')
      store(id, next)
      return { isDone: true, snapshot: snapshotOf(id) }
    }
  }
}

/** @param now returns milliseconds since the epoch */
export function createMemoryValues<Value extends NonNullable<unknown>>(
  now: () => number,
  lifetimeMs: number
): Values<Value> {
  const values = createExpiringMap<Value>(Number.POSITIVE_INFINITY, now)
  return {
    now,
    read: async name => values.get(name),
    async change(name, rule) {
      const { result, cell } = rule(values.get(name), now())
      if (cell !== undefined) values.set(name, cell, lifetimeMs)
      return result
    }
  }
}
