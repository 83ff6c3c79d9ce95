/**
 * The refresh step of the contract (section 5.1, step 3.2), made safe for single-use refresh tokens: one renewal per
 * refresh token at a time, its result kept for requests that left the browser before the new cookie reached it.
 */
import { createHash } from 'node:crypto'
import type { Coordination, Once, Run, Settled } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import type { SessionFields, SessionRecord } from '../session/record.js'
import { createDoubts } from './doubts.js'
import { abandon } from './grants.js'
import type { Log } from './log.js'
import { hasEnded } from './logouts.js'
import type { Mode } from './mode.js'

export interface RenewalParts {
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly coordination: Coordination
  readonly now: () => number
  readonly marginSeconds: number
  readonly keepSeconds: number
  readonly maxAgeSeconds: number
  readonly metrics?: Pick<Metrics, 'refreshEnded'>
}

/**
 * - `live`: `record` holds tokens that are good now
 * - `ended`: the provider has ended this login
 * - `loggedOut`: a logout has; what this browser has now may be the next login
 * - `unavailable`: the login stands, but the provider could not renew it now; `record` is what to keep meanwhile
 */
export type CurrentSession =
  | { readonly kind: 'live'; readonly record: SessionRecord }
  | { readonly kind: 'ended' }
  | { readonly kind: 'loggedOut' }
  | { readonly kind: 'unavailable'; readonly record: SessionRecord; readonly retryAfterSeconds: number }

export interface Renewals {
  /** The session with tokens that have not expired, renewed if it must be. The record is the same object if nothing changed. */
  current(record: SessionRecord, log: () => Log): Promise<CurrentSession>
  /** The session that renewals under way or just done have made of `record`. */
  newest(record: SessionRecord): Promise<SessionRecord>
  /**
   * For a browser that left before it was given `after`: the result is kept for as long as its cookie from before lives,
   * since nothing else leads to the only refresh token that is still good.
   */
  keepUndelivered(before: SessionRecord, after: SessionRecord): Promise<void>
}

// What is kept for, and handed to, everyone who asks for the same renewal; plain JSON.
type Renewal =
  | { readonly outcome: 'renewed'; readonly record: SessionRecord }
  | { readonly outcome: 'partial'; readonly record: SessionRecord; readonly retryAt: number }
  | { readonly outcome: 'failed'; readonly retryAt: number }
  | { readonly outcome: 'rejected' }

// A failure is remembered this long, so that a thousand waiting pages do not become a thousand calls.
const FAILURE_PAUSE_SECONDS = 1
const LONGEST_PAUSE_SECONDS = 60
// A provider that gives old tokens out again could otherwise lead round in a circle.
const LONGEST_CHAIN = 100
const CLOCK_LEEWAY_MS = 300_000

export function createRenewals(parts: RenewalParts): Renewals {
  const { mode, idp, coordination, now, marginSeconds, keepSeconds, maxAgeSeconds, metrics = noMetrics } = parts
  const keepMs = keepSeconds * 1000
  const doubts = createDoubts(coordination, keepMs)

  function hasExpired({ expires_at = 0 }: SessionFields): boolean {
    return expires_at < now()
  }

  function isDue({ fields, issuedAt }: SessionRecord): boolean {
    const { expires_at = 0 } = fields
    // A margin longer than half the lifetime would renew at every request.
    const marginMs = Math.min(marginSeconds * 1000, Math.max(0, (expires_at - issuedAt) / 2))
    // Tokens from the future were issued before the clock was set back; when they end is not known.
    return expires_at - marginMs < now() || issuedAt > now() + CLOCK_LEEWAY_MS
  }

  // No pause is longer than the longest: what seems so was written before the clock was set back.
  function isPausing(retryAt: number): boolean {
    return now() < retryAt && retryAt - now() <= LONGEST_PAUSE_SECONDS * 1000
  }

  function leadsOn(kept: Renewal, from: SessionRecord): boolean {
    if (kept.outcome === 'rejected') return true
    if (kept.outcome === 'failed') return isPausing(kept.retryAt)
    if (kept.record.fields.refresh_token !== from.fields.refresh_token) return true
    // A provider that does not rotate gives the same key again; then what was kept may be the very session that is due.
    if (kept.outcome === 'partial') return isPausing(kept.retryAt)
    return kept.record.issuedAt > from.issuedAt && !hasExpired(kept.record.fields)
  }

  async function renewOnce(record: SessionRecord, log: () => Log): Promise<Once<Renewal>> {
    const started = performance.now()
    let calls = 0
    const once = await coordination.once<Renewal>(
      renewalKey(record),
      async run => {
        const refreshed = await mode.refresh(record.fields, fields => run.leave(half(record, fields)))
        calls = refreshed.calls
        const value = await settle(record, refreshed, run, log)
        const isPrecious = 'record' in value
        return { value, isPrecious, keepMs: value.outcome === 'failed' ? value.retryAt - now() : keepMs }
      },
      kept => leadsOn(kept, record)
    )
    metrics.refreshEnded(outcomeOf(once))
    logRenewal(log(), { mode: mode.name, once, calls, durationMs: performance.now() - started, record, now: now() })
    return once
  }

  /**
   * What another process goes on from, should this one die between two refreshes. No browser was given it then, so that
   * it is kept for as long as a cookie from before lives.
   */
  function half(before: SessionRecord, fields: SessionFields): Settled<Renewal> {
    const record = { ...before, issuedAt: now(), fields }
    return { value: { outcome: 'partial', record, retryAt: now() }, keepMs: maxAgeSeconds * 1000 }
  }

  async function settle(
    before: SessionRecord,
    refreshed: Awaited<ReturnType<Mode['refresh']>>,
    run: Run,
    log: () => Log
  ): Promise<Renewal> {
    const record = refreshed.outcome === 'failed' ? before : { ...before, issuedAt: now(), fields: refreshed.fields }
    // A logout that came meanwhile wins: the token that arrives late is not for anyone.
    if (refreshed.outcome !== 'failed' && (await hasEnded(coordination, before.id))) {
      abandon(idp, record.fields.refresh_token as string)
      return { outcome: 'rejected' }
    }
    if (refreshed.outcome === 'complete') return { outcome: 'renewed', record }
    const { error } = refreshed
    const isDead = error instanceof OAuthError && error.error === 'invalid_grant'
    if (isDead && (await doubts.isBelieved(renewalKey(before), run))) return { outcome: 'rejected' }
    const isPassing = isDead || (error instanceof UpstreamError && !error.isRefusal)
    log()[isPassing ? 'warn' : 'error']({ event: 'refresh_failed', err: error }, 'the provider did not renew a session')
    const retryAt = now() + pauseSeconds(error) * 1000
    return refreshed.outcome === 'partial' ? { outcome: 'partial', record, retryAt } : { outcome: 'failed', retryAt }
  }

  async function renew(record: SessionRecord, log: () => Log): Promise<CurrentSession> {
    let latest = record
    for (let step = 1; ; step++) {
      const { value, how } = await renewOnce(latest, log)
      if (value.outcome === 'rejected') return { kind: 'ended' }
      // Where a provider gives one refresh token to two logins their renewal is one, but not their logout.
      if (value.outcome !== 'failed') latest = { ...value.record, id: record.id }
      const isFresh = how !== 'kept'
      if (!hasExpired(latest.fields) || (value.outcome === 'renewed' && isFresh))
        return { kind: 'live', record: latest }
      if (value.outcome !== 'renewed' && (isFresh || isPausing(value.retryAt))) {
        const retryAfterSeconds = Math.max(1, Math.ceil((value.retryAt - now()) / 1000))
        return { kind: 'unavailable', record: latest, retryAfterSeconds }
      }
      if (step === LONGEST_CHAIN)
        return { kind: 'unavailable', record: latest, retryAfterSeconds: FAILURE_PAUSE_SECONDS }
      // What was kept has itself expired, or waited for long enough; the chain goes on from there.
    }
  }

  return {
    async current(record, log) {
      if (await hasEnded(coordination, record.id)) return { kind: 'loggedOut' }
      if (!isDue(record)) return { kind: 'live', record }
      const session = await renew(record, log)
      // A logout that came meanwhile wins, whatever the provider did.
      return (await hasEnded(coordination, record.id)) ? { kind: 'loggedOut' } : session
    },
    async newest(record) {
      let latest = record
      for (let step = 1; step < LONGEST_CHAIN; step++) {
        const renewal = await coordination.result<Renewal>(renewalKey(latest))
        const next = renewal?.outcome === 'renewed' || renewal?.outcome === 'partial' ? renewal.record : undefined
        if (!next || next.fields.refresh_token === latest.fields.refresh_token) return latest
        latest = next
      }
      return latest
    },
    async keepUndelivered(before, after) {
      const value: Renewal = { outcome: 'renewed', record: after }
      const work = async () => ({ value, isPrecious: true, keepMs: maxAgeSeconds * 1000 })
      // Not accepting what is kept is what replaces it.
      await coordination.once<Renewal>(renewalKey(before), work, () => false)
    }
  }
}

/** Keyed by the token's hash (SHA-256), so that the token itself is in no key. */
function renewalKey({ fields }: SessionRecord): string {
  return `refresh:${shortHash(fields.refresh_token ?? '', 43)}`
}

function pauseSeconds(error: unknown): number {
  const asked = error instanceof OAuthError || error instanceof UpstreamError ? error.retryAfterSeconds : undefined
  return Math.min(LONGEST_PAUSE_SECONDS, Math.max(FAILURE_PAUSE_SECONDS, asked ?? FAILURE_PAUSE_SECONDS))
}

interface LoggedRenewal {
  readonly mode: string
  readonly once: Once<Renewal>
  readonly calls: number
  readonly durationMs: number
  readonly record: SessionRecord
  readonly now: number
}

function outcomeOf({ value, how }: Once<Renewal>): string {
  if (value.outcome !== 'renewed') return value.outcome
  return { ran: 'refreshed', joined: 'coalesced', kept: 'kept' }[how]
}

function logRenewal(log: Log, { mode, once, calls, durationMs, record, now }: LoggedRenewal): void {
  const { value, how } = once
  const expiresAt = value.outcome === 'renewed' ? value.record.fields.expires_at : undefined
  log.info(
    {
      event: 'refresh',
      mode,
      outcome: outcomeOf(once),
      how,
      duration_ms: Math.round(durationMs),
      provider_calls: calls,
      ...(expiresAt !== undefined && { lifetime_seconds: Math.round((expiresAt - now) / 1000) }),
      session: shortHash(record.id, 8)
    },
    'session refresh'
  )
}

function shortHash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, length)
}
