/**
 * Acquires the lease of a session, sends a token request under it, and stores the outcome. A refresh, a login and a change by a
 * program share this code.
 */
import type { IdentityProvider } from '../provider/client.js'
import type { SessionRecord } from '../session/record.js'
import { ignoreUnavailable } from '../store/cells.js'
import type { Places } from '../store/places.js'
import type { SessionKey } from '../store/redis-cells.js'
import type { Outcome } from '../store/rules.js'
import type { Acquisition, Commit, GrantedLease, SessionStore } from '../store/store.js'
import { type Clock, startStopwatch, wait } from '../support/clock.js'

/** The longest time that a request waits for a lease, in milliseconds. */
const PATIENCE_MS = 5000
/** A token request ends this long after its lease was asked for, in milliseconds. The lease is longer. */
export const REQUEST_MS = 60_000
const MIN_DELAY_MS = 50
const MAX_DELAY_MS = 500
const ASK_FOR_DEATH_MS = 1000

export interface LeaseDependencies {
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue'>
  readonly store: SessionStore
  readonly places: Pick<Places, 'isDead'>
  readonly clock: Clock
}

interface LeaseRequest {
  readonly session: SessionKey
  /** The revision that the caller has, 0 for a login. If this process has learned of a newer one, the result is `newer`. */
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

/** A lease that may be used now. Every use ends with `commit`. */
export interface UsableLease extends Pick<GrantedLease, 'suspectMs'> {
  /** The newest session, to which the lease belongs. Undefined for a login. */
  readonly record: SessionRecord | undefined
  /** The milliseconds that a token request under this lease may still take. */
  readonly leftMs: () => number
  /**
   * Sends the token request, and gives back the slot in the queue after its response. Call it in the same turn of the event
   * loop in which the lease was acquired, because an older lease is not certain.
   */
  send<Response>(request: (timeoutMs: number) => Promise<Response>): Promise<Response>
  /** Stores the outcome. Returns undefined if that is not possible now. Tokens are then remembered, and stored later. */
  commit(outcome: Outcome<SessionRecord>): Promise<Commit | undefined>
}

/**
 * - `granted`: use the lease immediately
 * - `paused`: nothing was sent. `isApplication` is true if the provider asked all processes for a pause.
 * - `busy`: the lease was not granted in time
 */
type LeaseResult =
  | Extract<Acquisition, { readonly kind: 'newer' | 'over' }>
  | { readonly kind: 'granted'; readonly lease: UsableLease }
  | { readonly kind: 'paused'; readonly ms: number; readonly isApplication: boolean }
  | { readonly kind: 'busy' }

/**
 * Waits for a slot in the queue and then asks for the lease. Repeats both while another process has the lease.
 * @throws StoreUnavailableError; ProviderError if the queue is full
 */
export async function acquireLease(dependencies: LeaseDependencies, request: LeaseRequest): Promise<LeaseResult> {
  const { idp, store, places, clock } = dependencies
  const { session, rev, queue, isUrgent = false, isChange, mayWait } = request
  const { id } = session
  const requester = { session: id, user: request.user ?? id }
  const sinceStartMs = startStopwatch(clock)
  let askAgainAt = 0
  let dead: string | undefined

  for (let delayMs = MIN_DELAY_MS; ; ) {
    const leave = queue ? await idp.enterTokenQueue(queue, { isUrgent, requester }) : () => {}
    let keepsSlot = false
    try {
      // A pause that began while this request was in the queue stops it.
      const pausedMs = queue ? store.pausedMs(isUrgent) : 0
      if (pausedMs > 0) return { kind: 'paused', ms: pausedMs, isApplication: true }
      const newest = store.newest(id)
      if (newest && rev !== undefined && newest.rev > rev) return { kind: 'newer', rev: newest.rev, record: newest }
      const acquired = await store.acquire(session, { dead, isChange })
      dead = undefined
      switch (acquired.kind) {
        case 'granted': {
          const record = store.newest(id)
          // A request may have named a newer revision meanwhile.
          keepsSlot = acquired.lease.isFresh() && (record?.rev ?? 0) === acquired.lease.rev
          if (keepsSlot) return { kind: 'granted', lease: usableLease(store, session, record, acquired.lease, leave) }
          if (mayWait()) continue
          return { kind: 'busy' }
        }
        case 'busy':
          if (sinceStartMs() < askAgainAt) break
          askAgainAt = sinceStartMs() + ASK_FOR_DEATH_MS
          if (!(await places.isDead(acquired.lease).catch(ignoreUnavailable))) break
          dead = acquired.lease.owner
          continue
        case 'lost':
          break
        case 'paused':
          return { ...acquired, isApplication: false }
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

function usableLease(
  store: SessionStore,
  session: SessionKey,
  record: SessionRecord | undefined,
  lease: GrantedLease,
  leave: () => void
): UsableLease {
  const leftMs = () => Math.round(REQUEST_MS - lease.elapsedMs())
  return {
    record,
    suspectMs: lease.suspectMs,
    leftMs,
    async send(request) {
      store.sending(session.id, lease.rev)
      try {
        return await request(leftMs())
      } finally {
        store.received(session.id)
        leave()
      }
    },
    commit: outcome => store.commit(session, lease, outcome).catch(ignoreUnavailable)
  }
}

/** Returns a function that is true until `ms` milliseconds have passed. */
export function patience(clock: Clock, ms = PATIENCE_MS): () => boolean {
  const elapsedMs = startStopwatch(clock)
  return () => elapsedMs() < ms
}
