/**
 * Finds the newest session for the cookie of a request, and refreshes that session if necessary. The store keeps the
 * result of each refresh under a hash of the old refresh token. These kept results form a chain from the session in the
 * cookie to the newest session.
 */
import { CoordinationError, type Once } from '../coordination/coordination.js'
import type { SessionRecord } from '../session/record.js'
import { type KeptRefresh, refreshKeyOf, withIdentityOf } from './kept-refresh.js'
import { createRefreshChain, type RefreshChain } from './refresh-chain.js'
import { createRefreshRun, type RefreshRequest, type RefreshRunParts } from './refresh-run.js'
import type { RefreshSchedule } from './refresh-schedule.js'
import { isPausing, SHORTEST_PAUSE_SECONDS } from './retry-pause.js'

export interface FollowParts extends RefreshRunParts {
  readonly schedule: RefreshSchedule
}

/**
 * - `live`: `record` holds tokens that are valid now
 * - `ended`: the identity provider refused the refresh token, so the person must sign in again
 * - `unavailable`: the session could not be refreshed now; `record` is the session that the browser should keep
 */
export type FollowedSession =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended' }
  | { readonly kind: 'unavailable'; readonly record: SessionRecord; readonly retryAfterSeconds: number }

export interface RefreshFollower {
  /** @throws CoordinationError if no result is available now */
  refresh(record: SessionRecord, request: RefreshRequest): Promise<FollowedSession>
  /**
   * Returns the newest session that earlier refreshes of `record` have produced, or `record` itself. Never refreshes.
   */
  newest(record: SessionRecord): Promise<SessionRecord>
}

// Without this limit, a provider that issues an old refresh token again could make the chain endless.
const LONGEST_CHAIN = 100
// The chain is followed again only if another request refreshes the session at the same moment.
const MOST_ATTEMPTS = 5

export function createRefreshFollower(parts: FollowParts): RefreshFollower {
  const { coordination, now, keepMs, report, schedule } = parts
  const { hasExpired, isDue } = schedule
  const refreshUnderLock = createRefreshRun(parts)

  /**
   * True if the kept result can be used for a request with the session `from`. Otherwise the session must be refreshed.
   */
  function isUsable(kept: KeptRefresh, from: SessionRecord): boolean {
    if (kept.outcome === 'rejected') return true
    if (kept.outcome === 'failed') return isPausing(kept.retryAt, now())
    if (kept.record.fields.refresh_token !== from.fields.refresh_token) return true
    // If the provider does not rotate refresh tokens, the old and the new session have the same key in the store. Then
    // the kept session may be `from` itself.
    if (kept.outcome === 'partial') return isPausing(kept.retryAt, now())
    return kept.record.issuedAt > from.issuedAt && !hasExpired(kept.record.fields)
  }

  /** Refreshes `record`, or returns the result of another run for the same refresh token. */
  async function refreshOnce(
    record: SessionRecord,
    request: RefreshRequest,
    chain: RefreshChain,
    stalledUntil: number
  ): Promise<Once<KeptRefresh>> {
    const startedAt = performance.now()
    const once = await coordination.once<KeptRefresh>(
      refreshKeyOf(record),
      run => refreshUnderLock({ ...request, record, chain, stalledUntil }, run),
      {
        accept: kept => isUsable(kept, record),
        // An early refresh does not wait for a lock, because the old access token is still valid.
        canWait: hasExpired(record.fields)
      }
    )
    const { value: result, how } = once
    // In forward-auth, every request gets the kept result until the browser has the new cookie. These requests are not
    // reported.
    if (how === 'joined' || (how === 'kept' && request.reachesBrowser)) {
      report.ended(request.log, record.id, { how, result, durationMs: performance.now() - startedAt, calls: 0 })
    }
    return once
  }

  async function followChain(
    record: SessionRecord,
    request: RefreshRequest,
    chain: RefreshChain
  ): Promise<FollowedSession> {
    const { reachesBrowser } = request
    let latest = record
    let stalledUntil = 0
    const unavailable = (retryAfterSeconds: number): FollowedSession => {
      // An earlier owner of the lock may still store a better result. Until then the browser must keep its current
      // cookie, because that result can only be found from that cookie.
      const newest = stalledUntil > now() ? record : latest
      if (!hasExpired(newest.fields)) return { kind: 'live', record: newest }
      return { kind: 'unavailable', record: newest, retryAfterSeconds }
    }
    const secondsUntil = (time: number) => Math.max(1, Math.ceil((time - now()) / 1000))
    for (let step = 1; step <= LONGEST_CHAIN; step++) {
      const once = await refreshOnce(latest, request, chain, stalledUntil).catch((error: unknown) => {
        // An early refresh failed, but the tokens of the last kept result are still valid.
        if (error instanceof CoordinationError && latest !== record && !hasExpired(latest.fields)) return undefined
        throw error
      })
      if (!once) return { kind: 'live', record: latest }
      const { value, how, stalledOwnerMs = 0 } = once
      if (stalledOwnerMs > 0) stalledUntil = Math.max(stalledUntil, now() + stalledOwnerMs)
      if (value.outcome === 'rejected') {
        return value.finalAt > now() ? unavailable(secondsUntil(value.finalAt)) : { kind: 'ended' }
      }
      if (value.outcome === 'failed') return unavailable(secondsUntil(value.retryAt))
      chain.follow(refreshKeyOf(latest), value)
      latest = withIdentityOf(record, value.record)
      const isFresh = how !== 'kept'
      // The request that runs a refresh shortens the chain. A request that joins the run must do the same only if it
      // sends the session to a browser.
      if (value.outcome === 'refreshed' && (how !== 'joined' || reachesBrowser) && stalledUntil <= now()) {
        const supersedes = await chain.shorten()
        if (supersedes !== undefined) latest = { ...latest, supersedes }
      }
      // A browser can refresh a kept session early with its next request. Forward-auth cannot send the session to the
      // browser, so it refreshes at once.
      const isGoodEnough = isFresh || reachesBrowser ? !hasExpired(latest.fields) : !isDue(latest)
      if (isGoodEnough || (value.outcome === 'refreshed' && isFresh)) return { kind: 'live', record: latest }
      if (
        value.outcome === 'partial' &&
        (isFresh || (isPausing(value.retryAt, now()) && !(await isContinued(latest))))
      ) {
        return unavailable(secondsUntil(value.retryAt))
      }
      // The tokens of this result have expired, or another request has completed the second step of a dual-mode
      // refresh. Continue with the next result in the chain.
    }
    return unavailable(SHORTEST_PAUSE_SECONDS)
  }

  /** Returns true if `record` is a partial result and another request has completed its refresh. */
  async function isContinued(record: SessionRecord): Promise<boolean> {
    const next = await coordination.peek<KeptRefresh>(refreshKeyOf(record))
    return next?.outcome === 'refreshed'
  }

  return {
    async refresh(record, request) {
      for (let attempt = 1; ; attempt++) {
        const chain = createRefreshChain(coordination, keepMs)
        const session = await followChain(record, request, chain)
        const sendsSession = request.reachesBrowser && 'record' in session && session.record !== record
        if (!sendsSession || (await chain.deliver()) || attempt === MOST_ATTEMPTS) return session
      }
    },
    async newest(record) {
      let latest = record
      for (let step = 1; step < LONGEST_CHAIN; step++) {
        const kept = await coordination.peek<KeptRefresh>(refreshKeyOf(latest))
        const next = kept?.outcome === 'refreshed' || kept?.outcome === 'partial' ? kept.record : undefined
        if (!next || next.fields.refresh_token === latest.fields.refresh_token) return latest
        latest = withIdentityOf(record, next)
      }
      return latest
    }
  }
}
