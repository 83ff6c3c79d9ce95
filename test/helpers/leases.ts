import type { GrantedLease, SessionStore } from '#src/sessions/store.js'

/** Returns a function that changes the leases which a store grants. */
export function withLeases(change: (lease: GrantedLease) => GrantedLease) {
  return (store: SessionStore): SessionStore => ({
    ...store,
    async acquire(...parameters) {
      const acquired = await store.acquire(...parameters)
      return acquired.kind === 'granted' ? { ...acquired, lease: change(acquired.lease) } : acquired
    }
  })
}
