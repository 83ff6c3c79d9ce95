import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { createExpiringMap } from '../support/expiring-map.js'

interface StoreOptions {
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
 * maps.
 *
 * A spent refresh token must be recognized when it is used again, so spent records are kept. Every refresh adds a spent
 * record. Spent records have their own map, so that the many spent tokens of one session cannot evict the valid token of
 * another session.
 */
export function createStore({ now, maxRecords = 10_000 }: StoreOptions): AdapterFactory {
  return () => createAdapter(now, maxRecords)
}

function createAdapter(now: () => number, maxRecords: number): Adapter {
  const live = createExpiringMap<Entry>(maxRecords, now)
  const spent = createExpiringMap<Entry>(maxRecords, now)

  return {
    async upsert(id, payload, expiresIn = Number.POSITIVE_INFINITY) {
      const ttlMs = expiresIn * 1000
      live.set(id, { payload, expiresAt: now() + ttlMs }, ttlMs)
    },
    async find(id) {
      return (live.get(id) ?? spent.get(id))?.payload
    },
    async findByUid(uid) {
      // A session that changes its id is written again with the same uid, so the newest record with this uid counts.
      let found: AdapterPayload | undefined
      for (const [, { payload }] of live.entries()) if (payload.uid === uid) found = payload
      return found
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
      spent.set(id, { payload, expiresAt: entry.expiresAt }, entry.expiresAt - now())
    },
    async destroy(id) {
      live.delete(id)
      spent.delete(id)
    },
    async revokeByGrantId(grantId) {
      for (const records of [live, spent]) {
        for (const [id, { payload }] of records.entries()) if (payload.grantId === grantId) records.delete(id)
      }
    }
  }
}
