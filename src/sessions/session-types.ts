/**
 * What the rest of the server sees of this folder: sessions, and never leases or cells. ARCHITECTURE.md has a glossary of the
 * words *record*, *revision* and *lease*.
 */
import type { SessionRecord } from '../cookie/session-record.js'
import type { End, Outcome, RefusalSeries, Suspicion } from './transitions.js'

/** The id of a session and, if the session is kept in Redis, the key that decrypts its record. */
export interface SessionKey {
  readonly id: string
  readonly key?: string | undefined
}

/** A session at a revision of which the caller knows. A login is at revision 0. */
export interface Revision extends SessionKey {
  readonly rev: number
}

/**
 * The reason why a session cannot be refreshed now:
 * - `pending`: another request or replica is still refreshing the session, or Redis has lost data and no process may refresh the
 *   session until the recovery time is over
 * - `store`: Redis is unavailable
 * - `unreadable`: the stored data has the wrong type, or this process does not have the secret that encrypted it
 * - `paused`: the identity provider asked for a pause
 * - `provider`: the identity provider did not refresh the session
 * - `refused`: the identity provider has refused the refresh token for 30 seconds. This proves nothing yet, but the session may be over
 */
export type Problem = 'pending' | 'store' | 'unreadable' | 'paused' | 'provider' | 'refused'

/**
 * Where a session stands.
 * - `live`: `record` is the session at its newest revision
 * - `over`: the session has ended
 * - `unavailable`: the newest revision cannot be read or refreshed now. `record` is the newest one that this process knows. It is
 *   undefined if this process knows none.
 *
 * `isUnsaved` means that only this process has `record`. The cookie of a session that is kept in Redis must not name a revision
 * until Redis has it.
 */
export type Current =
  | { readonly kind: 'live'; readonly record: SessionRecord; readonly isUnsaved?: true }
  | { readonly kind: 'over'; readonly end: End }
  | {
      readonly kind: 'unavailable'
      readonly why: Problem
      readonly retryAfterSeconds: number
      readonly record: SessionRecord | undefined
      readonly isUnsaved?: true
    }

/** How a token request under a lease is sent. */
export interface LeaseRequest {
  /** Waits for a slot in the queue to the provider, and runs `send` in it. Rejects without running it if the queue is full. */
  readonly inSlot: <Result>(send: () => Promise<Result>) => Promise<Result>
  /**
   * True for the second request of dual mode, which may be sent earlier after a pause than the first request of a refresh.
   */
  readonly isUrgent: boolean
  /** False if the caller has valid tokens, so it should not wait if another process has the lease. */
  readonly mayWait: boolean
}

/** The lease under which a token request is sent. */
export interface Grant {
  /** The refusals of this refresh token before the request. */
  readonly suspect: Suspicion | undefined
  /** Returns a series of refusals with one that has just arrived. */
  refusedAgain(series: string): RefusalSeries
  /** Returns the milliseconds that a token request may still take. */
  leftMs(): number
}

/**
 * What is stored after a token request. `isFinal` ends the session like a logout: all processes remember the end, and a later
 * revision does not revive the session.
 */
export type Result =
  | Exclude<Outcome<SessionRecord>, { readonly kind: 'unchecked' }>
  /**
   * More work is needed that must not occupy the slot of the token request. The lease stays, so no other process sends a token
   * request meanwhile. `record` is stored before: a session with the new refresh token, which must not get lost.
   */
  | { readonly kind: 'unfinished'; readonly record?: SessionRecord; readonly finish: () => Promise<Result> }

/**
 * Sends one token request. It is called in the same turn of the event loop in which the lease was acquired.
 * @param session the session for whose revision the lease was granted
 */
export type Work<Session> = (session: Session, grant: Grant) => Promise<Result>
