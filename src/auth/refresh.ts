/**
 * The refresh step of the contract (section 5.1, step 3.2), made safe for single-use refresh tokens. A refresh token is
 * used by one run at a time, under a lock. The result is kept for requests that still carry the old cookie, until the
 * browser has sent the new one.
 */
import { createHash } from 'node:crypto'
import { type Coordination, CoordinationError, type Run, type Settled } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { UpstreamError } from '../idp/errors.js'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import { abandon } from '../modes/grants.js'
import type { Mode, RefreshState } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import type { Log } from './log.js'
import { isLoggedOut, isLoggedOutHere } from './logout-marks.js'
import { pauseIfBusy } from './pause.js'
import { createRefreshChain, type KeptRefresh, type RefreshChain } from './refresh-chain.js'
import { createRefreshReport, type RefreshOutcome } from './refresh-report.js'
import { createRefreshSchedule } from './refresh-schedule.js'
import { judgeRefusal } from './refresh-verdict.js'

export interface RefreshParts {
  readonly mode: Mode
  readonly idp: Pick<IdentityProvider, 'revokeRefreshToken'>
  readonly coordination: Coordination
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly marginSeconds: number
  readonly spreadSeconds: number
  readonly keepSeconds: number
  readonly maxAgeSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded'>
}

/**
 * - `live`: `record` holds tokens that are valid now
 * - `ended`: the identity provider has ended this login
 * - `loggedOut`: a logout has ended it
 * - `unavailable`: the session stands, but it could not be refreshed now; `record` is the newest state of it
 */
export type CurrentSession =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended' }
  | { readonly kind: 'loggedOut' }
  | { readonly kind: 'unavailable'; readonly record: SessionRecord; readonly retryAfterSeconds: number }

export interface Refreshes {
  /**
   * The session with valid tokens, refreshed if necessary. If nothing changed, the record is the same object.
   * @param options.reachesBrowser false: the response cannot set cookies, so the browser's old cookie must go on leading to
   *   the newest session
   */
  current(
    record: SessionRecord,
    log: () => Log,
    options?: { readonly reachesBrowser: boolean }
  ): Promise<CurrentSession>
  /** The newest session that finished refreshes have made of `record`. */
  newest(record: SessionRecord): Promise<SessionRecord>
}

// A failure is kept this long, so that a thousand waiting pages do not become a thousand calls.
const FAILURE_PAUSE_SECONDS = 1
const LONGEST_PAUSE_SECONDS = 60
// How long the first `invalid_request` is remembered: longer than it takes to believe it.
const SUSPICION_KEPT_MS = 300_000
// A provider that issues old tokens again could otherwise make the chain of kept results a circle.
const LONGEST_CHAIN = 100
// A chain is followed again only if another request refreshed the session in exactly this moment.
const MOST_ATTEMPTS = 5

/** One request that asks for the current session. */
interface Asking {
  readonly log: () => Log
  readonly reachesBrowser: boolean
}

export function createRefreshes(parts: RefreshParts): Refreshes {
  const { mode, idp, coordination, now, keepSeconds, maxAgeSeconds, metrics = noMetrics } = parts
  const keepMs = keepSeconds * 1000
  const maxAgeMs = maxAgeSeconds * 1000
  const { hasExpired, isDue } = createRefreshSchedule(parts)
  const report = createRefreshReport(mode.name, metrics)

  // A longer pause than the longest was written before the clock was set back.
  function isPausing(retryAt: number): boolean {
    return now() < retryAt && retryAt - now() <= LONGEST_PAUSE_SECONDS * 1000
  }

  function isUsable(kept: KeptRefresh, from: SessionRecord): boolean {
    if (kept.outcome === 'rejected') return true
    if (kept.outcome === 'failed') return isPausing(kept.retryAt)
    if (kept.record.fields.refresh_token !== from.fields.refresh_token) return true
    // A provider that does not rotate refresh tokens gives the same key again, so the kept record may be `from` itself.
    if (kept.outcome === 'partial') return isPausing(kept.retryAt)
    return kept.record.issuedAt > from.issuedAt && !hasExpired(kept.record.fields)
  }

  /** One run for this refresh token, or the result of another. */
  async function refreshOnce(record: SessionRecord, asking: Asking, chain: RefreshChain, stalledUntil: number) {
    const { log, reachesBrowser } = asking
    const started = performance.now()
    const once = await coordination.once<KeptRefresh>(
      keyOf(record),
      run => refreshNow(record, run, asking, chain, stalledUntil),
      {
        accept: kept => isUsable(kept, record),
        // A valid token can be used meanwhile, so an early refresh waits for nobody.
        canWait: hasExpired(record.fields)
      }
    )
    const { value, how } = once
    // Forward-auth uses the kept result at every request until the browser has the new cookie.
    if (how === 'joined' || (how === 'kept' && reachesBrowser)) {
      const outcome = value.outcome === 'refreshed' ? (how === 'joined' ? 'coalesced' : 'kept') : value.outcome
      reportEnd(log, record, { outcome, how, durationMs: performance.now() - started, calls: 0 }, value)
    }
    return once
  }

  function reportEnd(log: () => Log, { id }: SessionRecord, outcome: RefreshOutcome, value: KeptRefresh) {
    const expiresAt = value.outcome === 'refreshed' ? value.record.fields.expires_at : undefined
    report.ended(log(), id, { ...outcome, lifetimeMs: expiresAt === undefined ? undefined : expiresAt - now() })
  }

  async function refreshNow(
    record: SessionRecord,
    run: Run<KeptRefresh>,
    { log, reachesBrowser }: Asking,
    chain: RefreshChain,
    stalledUntil: number
  ) {
    await chain.ensureCurrent()
    const started = performance.now()
    const isSecondStep = record.internalExpiresAt !== undefined
    const pausedMs = coordination.pausedMs({ isUrgent: isSecondStep })
    if (pausedMs > 0) throw new CoordinationError('paused', Math.ceil(pausedMs / 1000))
    const key = keyOf(record)
    const refreshed = await mode.refresh(record, {
      timeoutMs: run.remainingMs,
      async betweenSteps(reached) {
        await run.checkpoint(forDelivery(checkpointOf(record, reached), reachesBrowser))
        await run.ensureOwned()
      }
    })
    const finalAt = Math.max(now() + run.stalledOwnerMs, stalledUntil)
    const settled = forDelivery(
      settle(record, refreshed, { key, finalAt, previous: run.previous, log }),
      reachesBrowser
    )
    const { outcome } = settled.value
    const durationMs = performance.now() - started
    reportEnd(log, record, { outcome, how: 'ran', durationMs, calls: refreshed.calls }, settled.value)
    return settled
  }

  function checkpointOf(before: SessionRecord, reached: RefreshState): Settled<KeptRefresh> {
    const record = successor(before, reached, keyOf(before))
    return { value: { outcome: 'partial', record, retryAt: now() }, keepMs: maxAgeMs, hasTokens: true }
  }

  function settle(
    before: SessionRecord,
    refreshed: Awaited<ReturnType<Mode['refresh']>>,
    { key, finalAt, previous, log }: SettleParts
  ): Settled<KeptRefresh> {
    if (refreshed.outcome !== 'failed' && isLoggedOutHere(coordination, before.id)) {
      const { fields } = refreshed.outcome === 'complete' ? refreshed : refreshed.state
      abandon(idp, fields.refresh_token as string)
      return { value: { outcome: 'rejected', finalAt: 0 }, keepMs }
    }
    if (refreshed.outcome === 'complete') {
      const record = successor(before, refreshed, key)
      return { value: { outcome: 'refreshed', record }, keepMs: maxAgeMs, hasTokens: true }
    }
    const { error } = refreshed
    pauseIfBusy(coordination, error)
    const since = previous?.outcome === 'failed' ? previous.suspectedSince : undefined
    const refusal = judgeRefusal(error, since, now())
    if (refusal.kind === 'final') {
      return { value: { outcome: 'rejected', finalAt }, keepMs: Math.max(0, finalAt - now()) + keepMs }
    }
    const isTemporary = refusal.kind === 'suspected' || isPassing(error)
    const level = isTemporary ? 'warn' : 'error'
    log()[level]({ event: 'refresh_failed', err: error }, 'the identity provider did not refresh a session')
    const retryAt = now() + pauseSeconds(error) * 1000
    if (refreshed.outcome === 'partial') {
      const record = successor(before, refreshed.state, key)
      return { value: { outcome: 'partial', record, retryAt }, keepMs: maxAgeMs, hasTokens: true }
    }
    if (refusal.kind === 'suspected') {
      return { value: { outcome: 'failed', retryAt, suspectedSince: refusal.since }, keepMs: SUSPICION_KEPT_MS }
    }
    return { value: { outcome: 'failed', retryAt }, keepMs: retryAt - now() }
  }

  function successor(before: SessionRecord, state: RefreshState, key: string): SessionRecord {
    const { internalExpiresAt: _done, ...rest } = before
    const { fields, internalExpiresAt } = state
    const step = internalExpiresAt === undefined ? {} : { internalExpiresAt }
    return { ...rest, fields, ...step, issuedAt: now(), supersedes: key }
  }

  async function refresh(record: SessionRecord, asking: Asking): Promise<CurrentSession> {
    for (let attempt = 1; ; attempt++) {
      const chain = createRefreshChain(coordination, keepMs)
      const session = await followChain(record, asking, chain)
      const sendsSession = asking.reachesBrowser && 'record' in session && session.record !== record
      if (!sendsSession || (await chain.deliver()) || attempt === MOST_ATTEMPTS) return session
    }
  }

  /** Follows the kept results from `record`, and refreshes at the end of the chain. */
  async function followChain(record: SessionRecord, asking: Asking, chain: RefreshChain): Promise<CurrentSession> {
    let latest = record
    let stalledUntil = 0
    const unavailable = (retryAfterSeconds: number): CurrentSession => {
      // While an earlier owner may deliver a better result, the browser must keep the cookie that leads to it.
      const newest = stalledUntil > now() ? record : latest
      if (!hasExpired(newest.fields)) return { kind: 'live', record: newest }
      return { kind: 'unavailable', record: newest, retryAfterSeconds }
    }
    const secondsUntil = (time: number) => Math.max(1, Math.ceil((time - now()) / 1000))
    for (let step = 1; step <= LONGEST_CHAIN; step++) {
      const once = await refreshOnce(latest, asking, chain, stalledUntil).catch((error: unknown) => {
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
      chain.follow(keyOf(latest), value)
      latest = asSessionOf(record, value.record)
      const isFresh = how !== 'kept'
      // A request that joined a run needs the shorter chain only if it sends the session to a browser.
      if (value.outcome === 'refreshed' && (how !== 'joined' || asking.reachesBrowser) && stalledUntil <= now()) {
        const supersedes = await chain.shorten()
        if (supersedes !== undefined) latest = { ...latest, supersedes }
      }
      // A browser that is sent a kept session asks for an early refresh with its next request. Forward-auth does it now.
      const isGoodEnough = isFresh || asking.reachesBrowser ? !hasExpired(latest.fields) : !isDue(latest)
      if (isGoodEnough || (value.outcome === 'refreshed' && isFresh)) return { kind: 'live', record: latest }
      if (value.outcome === 'partial' && (isFresh || (isPausing(value.retryAt) && !(await isContinued(latest))))) {
        return unavailable(secondsUntil(value.retryAt))
      }
      // The kept tokens have expired, or the second step was completed since. The chain goes on from there.
    }
    return unavailable(FAILURE_PAUSE_SECONDS)
  }

  /** Whether a half-finished refresh was completed by another request. */
  async function isContinued(record: SessionRecord): Promise<boolean> {
    const next = await coordination.peek<KeptRefresh>(keyOf(record))
    return next?.outcome === 'refreshed'
  }

  async function refreshOrReport(record: SessionRecord, asking: Asking): Promise<CurrentSession> {
    try {
      return await refresh(record, asking)
    } catch (error) {
      if (!(error instanceof CoordinationError)) throw error
      report.unavailable(asking.log(), record.id, error)
      if (!hasExpired(record.fields)) return { kind: 'live', record }
      return { kind: 'unavailable', record, retryAfterSeconds: error.retryAfterSeconds }
    }
  }

  return {
    async current(record, log, { reachesBrowser } = { reachesBrowser: true }) {
      // Confirming shortens the life of a result, which the browser's other requests may still need.
      if (reachesBrowser && record.supersedes !== undefined) coordination.confirm(record.supersedes, keepMs)
      if (await isLoggedOut(coordination, record.id)) return { kind: 'loggedOut' }
      if (!isDue(record)) return { kind: 'live', record }
      const session = await refreshOrReport(record, { log, reachesBrowser })
      // A logout that came meanwhile wins, whatever the identity provider answered.
      if (!(await isLoggedOut(coordination, record.id))) return session
      const { fields } = 'record' in session ? session.record : record
      if (fields.refresh_token !== record.fields.refresh_token) abandon(idp, fields.refresh_token as string)
      return { kind: 'loggedOut' }
    },
    async newest(record) {
      let latest = record
      for (let step = 1; step < LONGEST_CHAIN; step++) {
        const kept = await coordination.peek<KeptRefresh>(keyOf(latest))
        const next = kept?.outcome === 'refreshed' || kept?.outcome === 'partial' ? kept.record : undefined
        if (!next || next.fields.refresh_token === latest.fields.refresh_token) return latest
        latest = asSessionOf(record, next)
      }
      return latest
    }
  }
}

/** Some providers give one refresh token to two logins. They share its refresh, but each remains its own session. */
function asSessionOf({ id, loggedInAt, identity }: SessionRecord, refreshed: SessionRecord): SessionRecord {
  return { ...refreshed, id, loggedInAt, identity }
}

interface SettleParts {
  readonly key: string
  readonly finalAt: number
  readonly previous: KeptRefresh | undefined
  readonly log: () => Log
}

/** Marks a session that the response of this run does not send to a browser. */
function forDelivery(settled: Settled<KeptRefresh>, reachesBrowser: boolean): Settled<KeptRefresh> {
  const { value } = settled
  return reachesBrowser || !('record' in value) ? settled : { ...settled, value: { ...value, isUndelivered: true } }
}

// 132 bits. The key is stored in every cookie, so it should be short.
const KEY_HASH_LENGTH = 22

/** The key contains only a SHA-256 hash of the token. */
function keyOf({ fields }: SessionRecord): string {
  const hash = createHash('sha256')
  const digest = hash.update(fields.refresh_token ?? '').digest('base64url')
  return `refresh:${digest.slice(0, KEY_HASH_LENGTH)}`
}

/** Repetition helps; otherwise the operator has to do something. */
function isPassing(error: unknown): boolean {
  return error instanceof CoordinationError || (error instanceof UpstreamError && !error.isRefusal)
}

function pauseSeconds(error: unknown): number {
  const asked = (error as { readonly retryAfterSeconds?: number | undefined }).retryAfterSeconds
  return Math.min(LONGEST_PAUSE_SECONDS, Math.max(FAILURE_PAUSE_SECONDS, asked ?? FAILURE_PAUSE_SECONDS))
}
