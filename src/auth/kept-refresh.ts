/** The result of a refresh, as the coordination store keeps it for later requests, and its key in the store. */
import { createHash } from 'node:crypto'
import type { Settled } from '../coordination/coordination.js'
import type { SessionRecord } from '../session/record.js'

/**
 * - `refreshed`: all tokens are new
 * - `partial`: in dual mode, only the first of the two token requests succeeded; the second may be sent after
 *   `retryAt`
 * - `failed`: no token is new; the refresh may be repeated after `retryAt`
 * - `rejected`: the session has ended; until `finalAt`, an earlier owner of the lock may still store a better result
 *
 * The values are plain JSON, because other replicas read them. Times are milliseconds since the epoch.
 */
export type KeptRefresh =
  | { readonly outcome: 'refreshed'; readonly record: SessionRecord; readonly isUndelivered?: boolean }
  | {
      readonly outcome: 'partial'
      readonly record: SessionRecord
      readonly isUndelivered?: boolean
      readonly retryAt: number
    }
  | { readonly outcome: 'failed'; readonly retryAt: number; readonly suspectedSince?: number }
  | { readonly outcome: 'rejected'; readonly finalAt: number }

/** A kept result that holds a session. `isUndelivered` is true while the session has not been sent to any browser. */
export type KeptSession = Extract<KeptRefresh, { readonly record: SessionRecord }>

// These characters hold 132 bits. The key is part of the session cookie, so it should be short.
const KEY_HASH_LENGTH = 22

/** Returns the key for the refresh of a session. It contains only a SHA-256 hash of the refresh token. */
export function refreshKeyOf({ fields }: SessionRecord): string {
  const digest = createHash('sha256').update(fields.refresh_token).digest('base64url')
  return `refresh:${digest.slice(0, KEY_HASH_LENGTH)}`
}

/** Marks the session in a result as undelivered, because the response to this request does not send it to a browser. */
export function markUndelivered(settled: Settled<KeptRefresh>): Settled<KeptRefresh> {
  const { value } = settled
  return 'record' in value ? { ...settled, value: { ...value, isUndelivered: true } } : settled
}

/**
 * Returns the refreshed session with the id, login time and identity of the session in the request. Some providers
 * issue the same refresh token to two logins. Such logins share the refresh, but each login keeps its own session id.
 */
export function withIdentityOf({ id, loggedInAt, identity }: SessionRecord, refreshed: SessionRecord): SessionRecord {
  return { ...refreshed, id, loggedInAt, identity }
}
