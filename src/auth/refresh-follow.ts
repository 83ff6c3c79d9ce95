/** Follows the kept results from the session in a browser's cookie to the newest session, and refreshes that if necessary. */
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
 * - `ended`: the identity provider has ended this login
 * - `unavailable`: the session still exists, but it could not be refreshed now; `record` is its newest state
 */
export type FollowedSession =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended' }
  | { readonly kind: 'unavailable'; readonly record: SessionRecord; readonly retryAfterSeconds: number }

export interface RefreshFollower {
  /** @throws CoordinationError if there is no result now */
  refresh(record: SessionRecord, request: RefreshRequest): Promise<FollowedSession>
  /** The newest session that finished refreshes have made of `record`. Never refreshes. */
  newest(record: SessionRecord): Promise<SessionRecord>
}

// A provider that issues old tokens again could otherwise make the chain of kept results a circle.
const LONGEST_CHAIN = 100
// A chain is followed again only if another request refreshed the session in exactly this moment.
const MOST_ATTEMPTS = 5

export function createRefreshFollower(parts: FollowParts): RefreshFollower {
  const { coordination, now, keepMs, report, schedule } = parts
  const { hasExpired, isDue } = schedule
  const refreshUnderLock = createRefreshRun(parts)

  /** True if a kept result still helps a request that has `from`. */
  function isUsable(kept: KeptRefresh, from: SessionRecord): boolean {
    if (kept.outcome === 'rejected') return true
    if (kept.outcome === 'failed') return isPausing(kept.retryAt, now())
    if (kept.record.fields.refresh_token !== from.fields.refresh_token) return true
    // A provider that does not rotate refresh tokens gives the same key again, so the kept record may be `from` itself.
    if (kept.outcome === 'partial') return isPausing(kept.retryAt, now())
    return kept.record.issuedAt > from.issuedAt && !hasExpired(kept.record.fields)
  }

  /** Runs a refresh for the refresh token of `record`, or returns the result of another run. */
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
        // An early refresh waits for no lock, because the old token is still valid.
        canWait: hasExpired(record.fields)
      }
    )
    const { value: result, how } = once
    // Forward-auth gets the kept result for every request until the browser has the new cookie, and does not report it.
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
      // While an earlier owner may deliver a better result, the browser must keep the cookie that leads to it.
      const newest = stalledUntil > now() ? record : latest
      if (!hasExpired(newest.fields)) return { kind: 'live', record: newest }
      return { kind: 'unavailable', record: newest, retryAfterSeconds }
    }
    const secondsUntil = (time: number) => Math.max(1, Math.ceil((time - now()) / 1000))
    for (let step = 1; step <= LONGEST_CHAIN; step++) {
      const once = await refreshOnce(latest, request, chain, stalledUntil).catch((error: unknown) => {
        // The refresh was early, and the tokens of the kept result are still valid.
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
      // A request that joined a run needs the shorter chain only if it sends the session to a browser.
      if (value.outcome === 'refreshed' && (how !== 'joined' || reachesBrowser) && stalledUntil <= now()) {
        const supersedes = await chain.shorten()
        if (supersedes !== undefined) latest = { ...latest, supersedes }
      }
      // A browser that is sent a kept session asks for an early refresh with its next request. Forward-auth does it now.
      const isGoodEnough = isFresh || reachesBrowser ? !hasExpired(latest.fields) : !isDue(latest)
      if (isGoodEnough || (value.outcome === 'refreshed' && isFresh)) return { kind: 'live', record: latest }
      if (
        value.outcome === 'partial' &&
        (isFresh || (isPausing(value.retryAt, now()) && !(await isContinued(latest))))
      ) {
        return unavailable(secondsUntil(value.retryAt))
      }
      // The kept tokens have expired, or another request has completed the second step. The chain goes on from there.
    }
    return unavailable(SHORTEST_PAUSE_SECONDS)
  }

  /** True if another request has completed a half-finished refresh. */
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
