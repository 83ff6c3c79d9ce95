/**
 * Acquires the lease of a session, sends a token request under it, and stores the outcome. The lease is the right of one process
 * to send the refresh token of the session. A refresh, a login, and a change by a request handler share this code.
 */

import { type Clock, startStopwatch, wait } from '../base/clock.js'
import type { SessionRecord } from '../cookie/record.js'
import type { IdentityProvider } from '../provider/client.js'
import { ignoreUnavailable } from './cells.js'
import type { Places } from './places.js'
import type { SessionKey } from './redis-cells.js'
import type { RefreshProblem } from './report.js'
import type { Acquisition, GrantedLease, SessionStore } from './store.js'

/** The longest time that a request waits for a lease, in milliseconds. */
const PATIENCE_MS = 5000
const MIN_DELAY_MS = 50
const MAX_DELAY_MS = 500
/** While a lease is busy, its owner is checked at this interval, in milliseconds, because it may have died. */
const OWNER_CHECK_MS = 1000

export interface LeaseDependencies {
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue'>
  readonly store: SessionStore
  readonly places: Pick<Places, 'isDead'>
  readonly clock: Clock
}

interface LeaseRequest {
  readonly session: SessionKey
  /**
   * The revision of the session that the caller has, 0 for a login. If this process knows a newer record, the result is `newer`.
   */
  readonly rev?: number | undefined
  /** The queue for the token request. Undefined if the caller sends no token request. */
  readonly queue?: 'refresh' | 'code exchange' | undefined
  /**
   * The user of the session. Users take turns in the queue. By default, each session counts as a separate user.
   */
  readonly user?: string | undefined
  /**
   * True for a code exchange and for the second request of dual mode. Both have priority over the first token request of a
   * refresh.
   */
  readonly isUrgent?: boolean | undefined
  /** True for a change by a request handler. */
  readonly isChange?: boolean | undefined
  /** Returns false if the caller should not wait any longer. */
  readonly mayWait: () => boolean
}

/**
 * - `granted`: use the lease immediately. `record` is the session at its newest revision, for which the lease was granted. For a
 *   login, `record` is undefined.
 * - `paused`: no token request was sent. `why` has the meaning of `RefreshProblem`.
 * - `busy`: the lease was not granted in time
 */
type LeaseResult =
  | Extract<Acquisition, { readonly kind: 'newer' | 'over' }>
  | { readonly kind: 'granted'; readonly lease: GrantedLease; readonly record: SessionRecord | undefined }
  | { readonly kind: 'paused'; readonly ms: number; readonly why: RefreshProblem }
  | { readonly kind: 'busy' }

/**
 * Waits for a slot in the queue and then requests the lease. While another process has the lease, leaves the queue, waits, and
 * tries again.
 * @throws StoreUnavailableError; ProviderError if the queue is full
 */
export async function acquireLease(dependencies: LeaseDependencies, request: LeaseRequest): Promise<LeaseResult> {
  const { idp, store, places, clock } = dependencies
  const { session, rev, queue, isUrgent = false, isChange, mayWait } = request
  const { id } = session
  const requester = { session: id, user: request.user ?? id }
  const sinceStartMs = startStopwatch(clock)
  let nextCheckAt = 0
  let dead: string | undefined

  for (let delayMs = MIN_DELAY_MS; ; ) {
    const leave = queue ? await idp.enterTokenQueue(queue, { isUrgent, requester }) : () => {}
    let keepsSlot = false
    try {
      // The provider may have asked for a pause while this request was in the queue, so check for a pause only now.
      const pausedMs = queue ? store.pausedMs(isUrgent) : 0
      if (pausedMs > 0) return { kind: 'paused', ms: pausedMs, why: 'paused' }
      const newest = store.newest(id)
      if (newest && rev !== undefined && newest.rev > rev) return { kind: 'newer', rev: newest.rev, record: newest }
      const acquired = await store.acquire(session, { dead, isChange })
      dead = undefined
      switch (acquired.kind) {
        case 'granted': {
          const record = store.newest(id)
          // While the lease was being requested, the cookie of another request may have shown a newer revision. In this case, the
          // lease is for an older revision, so request it again.
          const { lease } = acquired
          keepsSlot = lease.isFresh() && (record?.rev ?? 0) === lease.rev
          if (keepsSlot)
            return { kind: 'granted', record, lease: { ...lease, send: ask => lease.send(ask).finally(leave) } }
          lease.giveUp()
          if (mayWait()) continue
          return { kind: 'busy' }
        }
        case 'busy':
          if (sinceStartMs() < nextCheckAt) break
          nextCheckAt = sinceStartMs() + OWNER_CHECK_MS
          if (!(await places.isDead(acquired.lease).catch(ignoreUnavailable))) break
          dead = acquired.lease.owner
          continue
        case 'lost':
          break
        case 'paused':
          return { kind: 'paused', ms: acquired.ms, why: acquired.isSuspect ? 'refused' : 'provider' }
        default:
          return acquired
      }
    } finally {
      if (!keepsSlot) leave()
    }
    if (!mayWait()) return { kind: 'busy' }
    await wait(clock, delayMs)
    delayMs = Math.min(1.5 * delayMs, MAX_DELAY_MS)
  }
}

/** Returns a function that returns true until `ms` milliseconds have passed. */
export function patience(clock: Clock, ms = PATIENCE_MS): () => boolean {
  const elapsedMs = startStopwatch(clock)
  return () => elapsedMs() < ms
}
