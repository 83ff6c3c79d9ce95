import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'

export interface StoreParts {
  now: () => number
  /** How many records of one kind live at once; the oldest go first. Spent ones are counted apart. */
  most?: number
}

interface Entry {
  payload: AdapterPayload
  until: number
}

/**
 * What the provider remembers, in memory: bounded tables for each kind of record (session, grant, refresh token, ...).
 *
 * A refresh token that was spent must be recognized when it comes back, so spent records stay; but they are what grows
 * with every refresh, hence a table of their own: a busy session cannot push out the live token of a quiet one.
 */
export function createStore({ now, most = 10_000 }: StoreParts): AdapterFactory {
  return () => createAdapter(now, most)
}

function createAdapter(now: () => number, most: number): Adapter {
  const idByUid = new Map<string, string>()
  const idsByGrant = new Map<string, Set<string>>()
  const live = createTable(now, most, forget)
  const spent = createTable(now, most, forget)

  function remember(id: string, { uid, grantId }: AdapterPayload) {
    if (uid !== undefined) idByUid.set(uid, id)
    if (grantId !== undefined) idsByGrant.set(grantId, (idsByGrant.get(grantId) ?? new Set()).add(id))
  }

  function forget(id: string, { uid, grantId }: AdapterPayload) {
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
      live.set(id, { payload, until: now() + (expiresIn ?? Number.POSITIVE_INFINITY) * 1000 })
      remember(id, payload)
    },
    async find(id) {
      return (live.get(id) ?? spent.get(id))?.payload
    },
    async findByUid(uid) {
      const id = idByUid.get(uid)
      return id === undefined ? undefined : live.get(id)?.payload
    },
    // User codes belong to the device flow, which is off.
    async findByUserCode() {
      return undefined
    },
    async consume(id) {
      const entry = live.get(id)
      if (!entry) return
      live.delete(id)
      const payload = { ...entry.payload, consumed: Math.floor(now() / 1000) }
      spent.set(id, { payload, until: entry.until })
      remember(id, payload)
    },
    async destroy(id) {
      destroy(id)
    },
    async revokeByGrantId(grantId) {
      for (const id of idsByGrant.get(grantId) ?? []) destroy(id)
    }
  }
}

// Records of one kind have one lifetime, so the order of writing is the order of expiry: looking at the oldest is enough.
function createTable(now: () => number, most: number, forget: (id: string, payload: AdapterPayload) => void) {
  const entries = new Map<string, Entry>()

  function remove(id: string) {
    const entry = entries.get(id)
    if (!entry) return
    entries.delete(id)
    forget(id, entry.payload)
  }

  return {
    get(id: string): Entry | undefined {
      const entry = entries.get(id)
      if (!entry || entry.until > now()) return entry
      remove(id)
      return undefined
    },
    set(id: string, entry: Entry) {
      remove(id)
      entries.set(id, entry)
      for (const [oldest, { until }] of entries) {
        if (until > now() && entries.size <= most) break
        remove(oldest)
      }
    },
    delete: remove
  }
}
