/** Cells in the memory of this process, for a server without Redis. They are lost when the process ends. */
import { createExpiringMap } from '../base/expiring-map.js'
import { type Cells, type Snapshot, StoreUnavailableError } from './cells.js'
import type { Cell } from './transitions.js'

interface MemoryCellsOptions<Content> {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly lifetimeMs: (content: Content) => number
}

/** The object is the version of the cell. */
interface Version<Content> {
  readonly content: Content
}

interface Contents<Content> {
  get(id: string): Version<Content> | undefined
  set(id: string, version: Version<Content>, ttlMs: number): void
  /** The number of cells to which the limit applies. */
  readonly size: number
}

// A session without its record needs about 1 kB, so this many cells need 200 MB.
const MAX_CELLS = 200_000

/** @param limit the maximum number of cells. At the limit, a change with `mayFail` is refused if it needs a new cell. */
export function createMemoryCells<Content, Key extends string | { readonly id: string }>(
  { now, lifetimeMs }: MemoryCellsOptions<Content>,
  limit = MAX_CELLS,
  contents: Contents<Content> = createExpiringMap(Number.POSITIVE_INFINITY, now)
): Cells<Content, Key> {
  const idOf = (key: Key) => (typeof key === 'string' ? key : key.id)

  function snapshotOfId(id: string): Snapshot<Content> {
    const version = contents.get(id)
    return { version, content: version?.content }
  }

  return {
    now,
    read: async key => snapshotOfId(idOf(key)),
    async swap(key, expected, next, { mayFail }) {
      const id = idOf(key)
      const current = snapshotOfId(id)
      if (current.version !== expected.version) return { isDone: false, snapshot: current }
      if (mayFail && !current.content && contents.size >= limit) throw new StoreUnavailableError('full')
      contents.set(id, { content: next }, lifetimeMs(next))
      return { isDone: true, snapshot: snapshotOfId(id) }
    }
  }
}

const MAX_RECORDS = 10_000
// The provider needs time for each code, and at most 64 codes are sent to it in parallel (`provider/queue.ts`), so a login has
// ended long before this many later logins have begun.
const MAX_LOGINS = 50_000

interface SessionLimits {
  readonly cells?: number
  readonly logins?: number
  readonly records?: number
}

/**
 * Like `createMemoryCells`, but two kinds of content have their own limits. Above these limits, the oldest ones are dropped:
 * - Records of sessions, which are larger than entries. A request with an outdated cookie of a session without its record no
 *   longer gets the newest tokens.
 * - Cells of logins. Anybody can create one by sending a made-up code, so they never take room from sessions, and a new login is
 *   never refused because there are too many of them.
 */
export function createMemorySessionCells<Record>(
  options: MemoryCellsOptions<Cell<Record>>,
  limits: SessionLimits = {}
): Cells<Cell<Record>, { readonly id: string }> {
  const { now, lifetimeMs } = options
  const contents = createSessionContents<Record>(now, limits.logins ?? MAX_LOGINS)
  const cells = createMemoryCells<Cell<Record>, { readonly id: string }>(options, limits.cells, contents)
  const records = createExpiringMap<Record>(limits.records ?? MAX_RECORDS, now)

  function withRecord(id: string, snapshot: Snapshot<Cell<Record>>): Snapshot<Cell<Record>> {
    if (!snapshot.content?.entry.hasRecord) return snapshot
    const { entry } = snapshot.content
    const record = records.get(id)
    return { ...snapshot, content: { entry: { ...entry, hasRecord: record !== undefined }, record } }
  }

  return {
    now,
    read: async key => withRecord(key.id, await cells.read(key, true)),
    async swap(key, expected, next, options) {
      const { isDone, snapshot } = await cells.swap(key, expected, { entry: next.entry }, options)
      if (isDone && !next.entry.hasRecord) records.delete(key.id)
      else if (isDone && next.record !== undefined) records.set(key.id, next.record, lifetimeMs(next))
      return { isDone, snapshot: withRecord(key.id, snapshot) }
    }
  }
}

function createSessionContents<Record>(now: () => number, maxLogins: number): Contents<Cell<Record>> {
  const sessions = createExpiringMap<Version<Cell<Record>>>(Number.POSITIVE_INFINITY, now)
  const logins = createExpiringMap<Version<Cell<Record>>>(maxLogins, now)
  return {
    get: id => sessions.get(id) ?? logins.get(id),
    set(id, version, ttlMs) {
      const { rev, isFinal } = version.content.entry
      if (rev === 0 && !isFinal) {
        logins.set(id, version, ttlMs)
        return
      }
      logins.delete(id)
      sessions.set(id, version, ttlMs)
    },
    get size() {
      return sessions.size
    }
  }
}
