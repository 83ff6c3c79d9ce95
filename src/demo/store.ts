import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'

export interface StoreParts {
  now: () => number
  /**
   * The maximum number of records of one kind. The oldest records are evicted first. Spent records are counted separately,
   * with the same maximum.
   */
  maxRecords?: number
}

interface Entry {
  payload: AdapterPayload
  expiresAt: number
}

/**
 * Keeps the provider's records in memory. Each kind of record (session, grant, refresh token, ...) has its own bounded
 * tables.
 *
 * A spent refresh token must be recognized when it is used again, so spent records are kept. Every refresh adds a spent
 * record. Spent records have their own table, so that the many spent tokens of one session cannot evict the valid token of
 * another session.
 */
export function createStore({ now, maxRecords = 10_000 }: StoreParts): AdapterFactory {
  return () => createAdapter(now, maxRecords)
}

function createAdapter(now: () => number, maxRecords: number): Adapter {
  const idByUid = new Map<string, string>()
  const idsByGrant = new Map<string, Set<string>>()
  const live = createTable(now, maxRecords, removeFromIndexes)
  const spent = createTable(now, maxRecords, removeFromIndexes)

  function addToIndexes(id: string, { uid, grantId }: AdapterPayload) {
    if (uid !== undefined) idByUid.set(uid, id)
    if (grantId !== undefined) idsByGrant.set(grantId, (idsByGrant.get(grantId) ?? new Set()).add(id))
  }

  function removeFromIndexes(id: string, { uid, grantId }: AdapterPayload) {
    if (uid !== undefined && idByUid.get(uid) === id) idByUid.delete(uid)
    if (grantId === undefined) return
    const ids = idsByGrant.get(grantId)
    ids?.delete(id)
    if (ids?.size === 0) idsByGrant.delete(grantId)
  }

  function destroy(id: string) {
    live.delete(id)
    spent.delete(id)
  }

  return {
    async upsert(id, payload, expiresIn) {
      live.set(id, { payload, expiresAt: now() + (expiresIn ?? Number.POSITIVE_INFINITY) * 1000 })
      addToIndexes(id, payload)
    },
    async find(id) {
      return (live.get(id) ?? spent.get(id))?.payload
    },
    async findByUid(uid) {
      const id = idByUid.get(uid)
      return id === undefined ? undefined : live.get(id)?.payload
    },
    // Only the device flow uses user codes. The demo does not support that flow.
    async findByUserCode() {
      return undefined
    },
    async consume(id) {
      const entry = live.get(id)
      if (!entry) return
      live.delete(id)
      const payload = { ...entry.payload, consumed: Math.floor(now() / 1000) }
      spent.set(id, { payload, expiresAt: entry.expiresAt })
      addToIndexes(id, payload)
    },
    async destroy(id) {
      destroy(id)
    },
    async revokeByGrantId(grantId) {
      for (const id of idsByGrant.get(grantId) ?? []) destroy(id)
    }
  }
}

// All records of one kind have the same lifetime, so they expire in the order of insertion. `set` therefore checks only the
// oldest records.
function createTable(
  now: () => number,
  maxRecords: number,
  removeFromIndexes: (id: string, payload: AdapterPayload) => void
) {
  const entries = new Map<string, Entry>()

  function remove(id: string) {
    const entry = entries.get(id)
    if (!entry) return
    entries.delete(id)
    removeFromIndexes(id, entry.payload)
  }

  return {
    get(id: string): Entry | undefined {
      const entry = entries.get(id)
      if (!entry || entry.expiresAt > now()) return entry
      remove(id)
      return undefined
    },
    set(id: string, entry: Entry) {
      remove(id)
      entries.set(id, entry)
      for (const [oldest, { expiresAt }] of entries) {
        if (expiresAt > now() && entries.size <= maxRecords) break
        remove(oldest)
      }
    },
    delete: remove
  }
}
