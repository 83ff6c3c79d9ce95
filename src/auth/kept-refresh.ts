/** The kept result of a refresh, and the key under which the coordination store keeps it. */
import { createHash } from 'node:crypto'
import type { Settled } from '../coordination/coordination.js'
import type { SessionRecord } from '../session/record.js'

/** Plain JSON. Times are milliseconds since the epoch. */
export type KeptRefresh =
  | { readonly outcome: 'refreshed'; readonly record: SessionRecord; readonly isUndelivered?: boolean }
  | {
      readonly outcome: 'partial'
      readonly record: SessionRecord
      readonly isUndelivered?: boolean
      readonly retryAt: number
    }
  | { readonly outcome: 'failed'; readonly retryAt: number; readonly suspectedSince?: number }
  /** Until `finalAt`, an earlier owner of the lock may still deliver a better result. */
  | { readonly outcome: 'rejected'; readonly finalAt: number }

/** A kept result that holds a session. `isUndelivered` says that no browser has been sent this session. */
export type KeptSession = Extract<KeptRefresh, { readonly record: SessionRecord }>

// 132 bits. The key is stored in every cookie, so it should be short.
const KEY_HASH_LENGTH = 22

/** Returns the key for the refresh of a session. It contains only a SHA-256 hash of the refresh token. */
export function refreshKeyOf({ fields }: SessionRecord): string {
  const digest = createHash('sha256').update(fields.refresh_token).digest('base64url')
  return `refresh:${digest.slice(0, KEY_HASH_LENGTH)}`
}

/** Marks the session in a result as undelivered, because the response of this run does not send it to a browser. */
export function markUndelivered(settled: Settled<KeptRefresh>): Settled<KeptRefresh> {
  const { value } = settled
  return 'record' in value ? { ...settled, value: { ...value, isUndelivered: true } } : settled
}

/**
 * Gives a refreshed session the identity of the session that asked for it. Some providers issue one refresh token to two
 * logins. These logins share its refresh, but each keeps its own session id.
 */
export function withIdentityOf({ id, loggedInAt, identity }: SessionRecord, refreshed: SessionRecord): SessionRecord {
  return { ...refreshed, id, loggedInAt, identity }
}
