/** Cells in the memory of this process, for a server without Redis. They are lost when the process ends. */
import { createExpiringMap } from '../support/expiring-map.js'
import { type Cells, type Snapshot, StoreUnavailableError } from './cells.js'
import type { Cell } from './rules.js'

interface MemoryCellsOptions<Content> {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly lifetimeMs: (content: Content) => number
}

// A session without its record needs about 1 kB, so this many cells need 200 MB.
const MAX_CELLS = 200_000

/** @param limit the maximum number of cells. At the limit, a change with `mayFail` is refused if it needs a new cell. */
export function createMemoryCells<Content, Key extends string | { readonly id: string }>(
  { now, lifetimeMs }: MemoryCellsOptions<Content>,
  limit = MAX_CELLS
): Cells<Content, Key> {
  const contents = createExpiringMap<{ readonly content: Content }>(Number.POSITIVE_INFINITY, now)
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

/**
 * Like `createMemoryCells`, but records of sessions, which are larger than entries, have their own, smaller limit. At the limit,
 * the record that was stored first is dropped. A request with an outdated cookie of that session then no longer gets the newest
 * tokens.
 */
export function createMemorySessionCells<Record>(
  { now, lifetimeMs }: MemoryCellsOptions<Cell<Record>>,
  limits: { readonly cells?: number; readonly records?: number } = {}
): Cells<Cell<Record>, { readonly id: string }> {
  const cells = createMemoryCells<Cell<Record>, { readonly id: string }>({ now, lifetimeMs }, limits.cells)
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
