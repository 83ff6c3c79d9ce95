/** Acquires the lease of a session. A refresh, a login and a change by a program use this function. */
import type { IdentityProvider } from '../provider/client.js'
import { ignoreUnavailable } from '../store/cells.js'
import type { Places } from '../store/places.js'
import type { SessionKey } from '../store/redis-cells.js'
import type { Acquisition, GrantedLease, SessionStore } from '../store/store.js'
import { type Clock, startStopwatch, wait } from '../support/clock.js'

/** The longest time that a request waits for a lease, in milliseconds. */
const PATIENCE_MS = 5000
/** A token request ends this long after its lease was asked for, in milliseconds. The lease is longer. */
export const REQUEST_MS = 60_000
const MIN_DELAY_MS = 50
const MAX_DELAY_MS = 500
const ASK_FOR_DEATH_MS = 1000

export interface LeaseParts {
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue'>
  readonly store: SessionStore
  readonly places: Pick<Places, 'isDead'>
  readonly clock: Clock
}

interface LeaseRequest {
  readonly session: SessionKey
  /** The revision that the caller has, 0 for a login. If this process has learned of a newer one, the answer is `newer`. */
  readonly rev?: number | undefined
  /** The queue for the token request. Undefined if the caller sends none. */
  readonly queue?: 'refresh' | 'code exchange' | undefined
  /** Names the user of the session. Users take turns in the queue. By default, each session counts as a user. */
  readonly user?: string | undefined
  /** True if the request has priority over first requests: a code exchange, or the second request of dual mode. */
  readonly isUrgent?: boolean | undefined
  /** True for a change by a program. */
  readonly isChange?: boolean | undefined
  /** Returns false if the caller should not wait any longer. */
  readonly mayWait: () => boolean
}

/**
 * - `granted`: send the request in the same turn of the event loop, and call `leave` after its response
 * - `paused`: nothing was sent. `isApplication` is true if the provider asked all processes for a pause.
 * - `busy`: the lease was not granted in time
 */
type LeaseAnswer =
  | Extract<Acquisition, { readonly kind: 'newer' | 'over' }>
  | { readonly kind: 'granted'; readonly lease: GrantedLease; readonly leave: () => void }
  | { readonly kind: 'paused'; readonly ms: number; readonly isApplication: boolean }
  | { readonly kind: 'busy' }

/**
 * Waits for a place in the queue and then asks for the lease, again and again while another process has it.
 * @throws StoreUnavailableError; ProviderError if the queue is full
 */
export async function acquireLease(parts: LeaseParts, request: LeaseRequest): Promise<LeaseAnswer> {
  const { idp, store, places, clock } = parts
  const { session, rev, queue, isUrgent = false, isChange, mayWait } = request
  const requester = { session: session.id, person: request.user ?? session.id }
  const sinceAskedMs = startStopwatch(clock)
  let askAgainAt = 0
  let dead: string | undefined

  for (let delayMs = MIN_DELAY_MS; ; ) {
    const leave = queue ? await idp.enterTokenQueue(queue, { isUrgent, requester }) : () => {}
    let keepsPlace = false
    try {
      // A pause that began while this request was in the queue stops it.
      const pausedMs = queue ? store.pausedMs(isUrgent) : 0
      if (pausedMs > 0) return { kind: 'paused', ms: pausedMs, isApplication: true }
      const newest = store.newest(session.id)
      if (newest && rev !== undefined && newest.rev > rev) return { kind: 'newer', rev: newest.rev, record: newest }
      const answer = await store.acquire(session, { dead, isChange })
      dead = undefined
      switch (answer.kind) {
        case 'granted':
          keepsPlace = answer.lease.isFresh()
          if (keepsPlace) return { kind: 'granted', lease: answer.lease, leave }
          if (mayWait()) continue
          store.giveUp(session.id)
          return { kind: 'busy' }
        case 'busy':
          if (sinceAskedMs() < askAgainAt) break
          askAgainAt = sinceAskedMs() + ASK_FOR_DEATH_MS
          if (!(await places.isDead(answer.lease).catch(ignoreUnavailable))) break
          dead = answer.lease.owner
          continue
        case 'lost':
          break
        case 'paused':
          return { ...answer, isApplication: false }
        default:
          return answer
      }
    } finally {
      if (!keepsPlace) leave()
    }
    if (!mayWait()) return { kind: 'busy' }
    await wait(clock, delayMs)
    delayMs = Math.min(1.5 * delayMs, MAX_DELAY_MS)
  }
}

/** Returns a function that is true until `ms` milliseconds have passed. */
export function patience(clock: Clock, ms = PATIENCE_MS): () => boolean {
  const elapsedMs = startStopwatch(clock)
  return () => elapsedMs() < ms
}
