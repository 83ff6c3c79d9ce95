/**
 * The rules of the session store. Each rule is a pure function of the cell of a session, the time and a request. It returns a
 * result, the new cell if the cell changes, and a message for all processes. ARCHITECTURE.md explains the rules.
 *
 * All times are milliseconds on the clock of the store.
 */

/** Time limits, in milliseconds. */
export const TIMES = {
  leaseMs: 65_000,
  /** A token request ends this long after its lease was requested. The lease lasts longer, so the request always ends first. */
  requestMs: 60_000,
  /**
   * A token request begins at most this long after its lease was requested. No process is granted a lease within 2 seconds after
   * data loss, so a lease that Redis has lost since is still exclusive.
   */
  freshMs: 1000,
  maxPauseMs: 60_000,
  /**
   * The recovery time if data was lost and the caller does not have the record. During this time, other processes can restore the
   * record. The time is long, because the old master may accept writes for another 12 seconds during a failover.
   */
  lostRecordMs: 30_000,
  /**
   * Because clocks differ, a stored lease or pause may appear to exceed its maximum. This is the largest accepted excess, in
   * milliseconds. If the excess is larger, the value was written with a wrong clock. Such a pause is ignored, and such a lease is
   * shortened.
   */
  leewayMs: 5000,
  /** A session whose refresh token has been refused for this long may be over, so the user should get a link to sign in again. */
  suspectMs: 30_000
}

/** The most series of refusals that a cell keeps. */
const MAX_SERIES = 8

/**
 * The process that was granted a lease. If a later process has bound the socket of the same `hostSlot` (`host-slots.ts`), the
 * owner has died. `since` shows which process bound the socket later.
 */
export interface Owner {
  readonly owner: string
  readonly hostSlot?: string
  readonly since?: number
}

/** The right of one process to send the refresh token of a session. The lease expires at `until`. */
export interface Lease extends Owner {
  readonly until: number
}

export interface Entry {
  /** The newest revision, 0 before the login. */
  readonly rev: number
  /** True if the cell has the record of this revision. */
  readonly hasRecord: boolean
  readonly over?: End
  /**
   * True if the session is over at every revision: after a logout, a new login or an end by the access list. Any other reason ends the session
   * only at this revision: if a newer revision is stored later, the session is live again.
   */
  readonly isFinal?: true
  readonly lease?: Lease
  /** No lease is granted before `until`, because a token request failed or because data was lost. */
  readonly notBefore?: { readonly until: number; readonly why: 'failure' | 'loss' }
  /** Present if the provider has refused this refresh token in a way that does not end the session. */
  readonly suspect?: Suspicion
}

/**
 * Why a session is over:
 * - `logged_out`: by a logout
 * - `replaced`: by a new login of the same browser. Nothing is revoked, because some providers revoke the grant of a user as a whole,
 *   and with it the new login
 * - `refused`: the identity provider refused the refresh token, or the code of the login
 * - `other_identity`: the response to a refresh was for another user or from another issuer
 * - `failed`: the login could not be completed after its code had been exchanged
 * - `denied`: by the access list
 * - `lost`: data was lost, and no process has restored the record in time. This reason is never stored.
 */
export type End =
  | { readonly reason: 'logged_out' | 'replaced' | 'refused' | 'other_identity' | 'failed' | 'lost' }
  | Denial

/** The account of the session is not allowed (settings `access.…`, `login/access.ts`). */
export interface Denial {
  readonly reason: 'denied'
  /**
   * - `no_email`: the claims contain no usable e-mail address
   * - `not_verified`: the provider does not confirm that the e-mail address belongs to the account
   * - `not_listed`: no entry matches the account
   * - `no_claim`: all entries are about claims, and the account has none of these claims
   * - `acr`, `auth_time`: the user has not signed in strongly or recently enough (`login/authentication.ts`)
   */
  readonly problem: 'no_email' | 'not_verified' | 'not_listed' | 'no_claim' | 'acr' | 'auth_time'
  /**
   * The names of the claims that the setting requires and the account does not have. They come from the setting, so they contain
   * no account data.
   */
  readonly missing: readonly string[]
  /** The names of the claims that are one string with a listed value in it. */
  readonly strings?: readonly string[]
  /** What the setting requires and what the ID token says, if the problem is `acr` or `auth_time` (an age in seconds). */
  readonly required?: string
  readonly found?: string
}

/**
 * The refusals of one refresh token that may be invalid, by what they have in common (`login/evidence.ts`). Only a success ends a
 * series, however rarely a page asks.
 */
export type Suspicion = Readonly<Record<string, RefusalSeries>>

export interface RefusalSeries {
  /** The time of the first refusal. */
  readonly since: number
  /** The time of the latest refusal. */
  readonly last: number
  readonly refusals: number
}

/** The stored state of one session. `record` is undefined if the cell has none, or if it was not read. */
export interface Cell<Record> {
  readonly entry: Entry
  readonly record?: Record | undefined
}

/**
 * What the caller knows of a session. `rev` is the highest revision of which the caller has learned, and `record` is the newest
 * record that the caller has.
 */
export interface Known<Record> {
  readonly rev: number
  readonly record?: Record | undefined
  /** The revision of `record`, or 0. */
  readonly recordRev: number
}

export const LOGGED_OUT: End = { reason: 'logged_out' }
const LOST: End = { reason: 'lost' }

/** `record` is undefined if the record in the cell was not read. */
export type Newer<Record> = { readonly kind: 'newer'; readonly rev: number; readonly record: Record | undefined }
/** `isFinal` has the meaning of `Entry.isFinal`. */
export type Over = { readonly kind: 'over'; readonly end: End; readonly isFinal?: true }

/**
 * The state of a session in the store, compared with what the caller knows. `lost`: the caller knows a newer revision than the
 * store, or neither the store nor the caller has the record.
 */
export type Found<Record> = { readonly kind: 'current' } | Newer<Record> | Over | { readonly kind: 'lost' }

export type Acquired<Record> =
  | Exclude<Found<Record>, { readonly kind: 'current' }>
  | { readonly kind: 'granted'; readonly suspect: Suspicion | undefined }
  | { readonly kind: 'leased'; readonly lease: Lease }
  /** `isSuspect` is true if the session may be over. */
  | { readonly kind: 'paused'; readonly ms: number; readonly isSuspect: boolean }

/** `notOwner`: the caller no longer owns the lease, so the outcome was not stored. New tokens are stored even without the lease. */
type Committed<Record> = { readonly kind: 'stored' } | { readonly kind: 'notOwner' } | Newer<Record> | Over

/** The outcome of a token request, or of a change by a request handler. */
export type Outcome<Record> =
  | { readonly kind: 'tokens'; readonly record: Record; readonly pauseMs: number }
  /**
   * The tokens of a response, before the access list was checked. The owner keeps its lease, for the new revision, so no other
   * process sends a token request during the check. The result of the check is a `change` or the end of the session.
   */
  | { readonly kind: 'unchecked'; readonly record: Record }
  | { readonly kind: 'change'; readonly record: Record }
  /** `refusedAs` names the series that a refusal of the refresh token belongs to. Undefined if the failure was no refusal. */
  | { readonly kind: 'failure'; readonly pauseMs: number; readonly refusedAs?: string | undefined }
  | Over

export interface Step<Record, Result> {
  readonly result: Result
  /** The new cell. Undefined if the cell does not change. */
  readonly cell?: Cell<Record>
  readonly message?: 'lost' | 'loggedOut'
}

/** Compares the cell with what the caller knows. */
export function find<Record>(
  cell: Cell<Record> | undefined,
  { rev, recordRev }: Omit<Known<Record>, 'record'>
): Found<Record> {
  if (!cell) return { kind: rev === 0 ? 'current' : 'lost' }
  const { entry, record } = cell
  if (isOverForGood(entry)) return overForGood(entry)
  if (entry.rev < rev) return { kind: 'lost' }
  if (entry.over !== undefined) return { kind: 'over', end: entry.over }
  if (entry.rev === recordRev) return { kind: 'current' }
  return entry.hasRecord ? { kind: 'newer', rev: entry.rev, record } : { kind: 'lost' }
}

interface AcquireRequest<Record> extends Known<Record> {
  readonly me: Owner
  /** The name of an owner that has died, so its lease may be replaced. */
  readonly dead?: string | undefined
  /**
   * True for a change by a request handler. Such a change needs no token request, so it does not wait for the end of the pause
   * that follows a failed token request. The pause stays in force after the change.
   */
  readonly isChange?: boolean | undefined
}

/** True for the cell of a login that has not been completed. */
export function isLogin({ rev, isFinal }: Entry): boolean {
  return rev === 0 && !isFinal
}

function isOverForGood(entry: Entry): entry is Entry & { readonly over: End } {
  return entry.isFinal === true && entry.over !== undefined
}

function overForGood({ over }: { readonly over: End }): Over {
  return { kind: 'over', end: over, isFinal: true }
}

/** True for the outcome of a token response. Its refresh token must not get lost. */
export function hasTokens<Record>(
  outcome: Outcome<Record>
): outcome is Extract<Outcome<Record>, { readonly kind: 'tokens' | 'unchecked' }> {
  return outcome.kind === 'tokens' || outcome.kind === 'unchecked'
}

/**
 * Creates an entry. The caller must give every field, so that the compiler shows each rule that a new field of `Entry` concerns.
 * The entry does not have the fields that are undefined.
 */
function entryOf(fields: { readonly [Field in keyof Required<Entry>]: Entry[Field] }): Entry {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as Entry
}

/** Returns the entry of a session that is over. */
function overAt(rev: number, over: End, isFinal?: true): Entry {
  return entryOf({ rev, hasRecord: false, over, isFinal, lease: undefined, notBefore: undefined, suspect: undefined })
}

/** Requests the lease. If the cell has lost data, repairs the cell instead. */
export function acquire<Record>(
  cell: Cell<Record> | undefined,
  now: number,
  request: AcquireRequest<Record>,
  recoveryMs: number
): Step<Record, Acquired<Record>> {
  const { me, dead, isChange } = request
  const found = find(cell, request)
  if (found.kind === 'newer' || found.kind === 'over') return { result: found }
  const repaired = repair(cell, now, request, recoveryMs)
  if (repaired && repaired !== cell) return { cell: repaired, message: 'lost', result: { kind: 'lost' } }
  const entry = cell?.entry ?? { rev: 0, hasRecord: false }
  const { notBefore, ...unpaused } = entry
  const pauseMs = notBefore && notBefore.until <= now + TIMES.maxPauseMs + TIMES.leewayMs ? notBefore.until - now : 0
  if (pauseMs > 0 && notBefore?.why === 'loss') return { result: { kind: 'lost' } }
  // No process has restored the record in time. The cell does not change, because a process or browser that has the record may
  // still restore it.
  if (found.kind === 'lost') return { result: { kind: 'over', end: LOST } }
  const { lease } = entry
  if (lease && lease.until > now && lease.owner !== me.owner && lease.owner !== dead) {
    const until = now + TIMES.leaseMs
    if (lease.until <= until + TIMES.leewayMs) return { result: { kind: 'leased', lease } }
    const shortened = { ...lease, until }
    return { cell: { ...cell, entry: { ...entry, lease: shortened } }, result: { kind: 'leased', lease: shortened } }
  }
  // The owner of this lease has died, or its login takes longer than the lease. It may have sent the code, which is valid only once.
  if (lease && lease.owner !== me.owner && isLogin(entry)) {
    return { result: { kind: 'over', end: { reason: 'failed' } } }
  }
  const { suspect } = entry
  if (pauseMs > 0 && !isChange) return { result: { kind: 'paused', ms: pauseMs, isSuspect: isSuspect(suspect, now) } }
  const granted = { ...(isChange && pauseMs > 0 ? entry : unpaused), lease: { ...me, until: now + TIMES.leaseMs } }
  return { cell: { ...cell, entry: granted }, result: { kind: 'granted', suspect } }
}

interface CommitRequest<Record> {
  /** The revision whose refresh token was sent, or the revision that a request handler has changed. */
  readonly rev: number
  readonly owner: string
  readonly outcome: Outcome<Record>
}

/** Stores an outcome, and releases the lease if `owner` has it. Tokens are stored even if the lease has ended. */
export function commit<Record>(
  cell: Cell<Record> | undefined,
  now: number,
  { rev, owner, outcome }: CommitRequest<Record>
): Step<Record, Committed<Record>> {
  const { lease, ...entry } = cell?.entry ?? { rev: -1, hasRecord: false }
  if (isOverForGood(entry)) return { result: overForGood(entry) }
  const isOwner = lease?.owner === owner
  if (cell && entry.rev > rev && (entry.over !== undefined || entry.hasRecord)) {
    const result = find(cell, { rev, recordRev: rev }) as Newer<Record> | Over
    return isOwner ? { cell: { ...cell, entry }, result } : { result }
  }
  if (hasTokens(outcome) && entry.rev <= rev + 1) {
    const isUnchecked = outcome.kind === 'unchecked'
    const next = entryOf({
      rev: rev + 1,
      hasRecord: true,
      over: undefined,
      isFinal: undefined,
      lease: isUnchecked || !isOwner ? lease : undefined,
      notBefore: isUnchecked ? undefined : pauseFor(outcome.pauseMs, now),
      suspect: undefined
    })
    return { cell: { entry: next, record: outcome.record }, result: { kind: 'stored' } }
  }
  if (!cell || !isOwner || entry.rev !== rev || hasTokens(outcome)) return { result: { kind: 'notOwner' } }
  switch (outcome.kind) {
    case 'change':
      return {
        cell: { entry: { ...entry, rev: rev + 1, hasRecord: true }, record: outcome.record },
        result: { kind: 'stored' }
      }
    case 'over':
      return { cell: { entry: overAt(rev, outcome.end) }, result: { kind: 'stored' } }
    case 'failure': {
      const next = entryOf({
        rev,
        hasRecord: entry.hasRecord,
        over: undefined,
        isFinal: undefined,
        lease: undefined,
        notBefore: pauseFor(outcome.pauseMs, now),
        // A failure of another kind says nothing about the token, so it neither adds to the suspicion nor removes it.
        suspect: outcome.refusedAs === undefined ? entry.suspect : withRefusal(entry.suspect, outcome.refusedAs, now)
      })
      return { cell: { ...cell, entry: next }, result: { kind: 'stored' } }
    }
  }
}

/** Adds a refusal to the earlier ones of its series. */
export function refusedAgain(earlier: RefusalSeries | undefined, now: number): RefusalSeries {
  return { since: Math.min(earlier?.since ?? now, now), last: now, refusals: (earlier?.refusals ?? 0) + 1 }
}

function withRefusal(suspect: Suspicion = {}, name: string, now: number): Suspicion {
  const others = Object.entries(suspect).filter(([other]) => other !== name)
  const newest = others.sort(([, a], [, b]) => b.last - a.last).slice(0, MAX_SERIES - 1)
  return Object.fromEntries([[name, refusedAgain(suspect[name], now)], ...newest])
}

/** True if the provider has refused the refresh token for so long that the session may be over. */
export function isSuspect(suspect: Suspicion = {}, now: number): boolean {
  return Object.values(suspect).some(({ since }) => now - since >= TIMES.suspectMs)
}

interface RestoreRequest<Record> extends Known<Record> {
  readonly me: Owner
  /**
   * The token request of this process that is in progress: the revision whose refresh token was sent, and the milliseconds since
   * it was sent.
   */
  readonly sent?: { readonly rev: number; readonly ms: number } | undefined
  /** The owner names under which this process may have leases that it is not using now. */
  readonly unused: readonly string[]
}

/**
 * Stores again what a process knows: the newest record, and the lease of a token request in progress. Releases unused leases of
 * the process.
 */
export function restore<Record>(
  cell: Cell<Record> | undefined,
  now: number,
  request: RestoreRequest<Record>,
  recoveryMs: number
): Step<Record, undefined> {
  const { me, sent, unused } = request
  const repaired = repair(cell, now, request, recoveryMs)
  if (!repaired) return { result: undefined }
  const { lease, ...entry } = repaired.entry
  const until = sent?.rev === entry.rev ? now + TIMES.leaseMs - sent.ms : 0
  let next = repaired
  if (entry.over === undefined && until > 0 && !(lease?.owner === me.owner && lease.until > until - 1000)) {
    // If the lease in the cell has a different owner, either it was granted before Redis lost data, or its owner has not sent the
    // refresh token yet. In both cases, the lease may be replaced. If this process is the owner, but the lease ends before
    // `until`, Redis has failed over to an outdated replica, which still has the lease of an older request. In this case, extend
    // the lease.
    const end = Math.min(now + TIMES.leaseMs, Math.max(until, lease?.until ?? 0))
    next = { ...repaired, entry: { ...entry, lease: { ...me, until: end } } }
  } else if (lease && !sent && unused.includes(lease.owner)) {
    next = { ...repaired, entry }
  }
  if (next === cell) return { result: undefined }
  return { cell: next, result: undefined, ...(repaired !== cell && { message: 'lost' as const }) }
}

/**
 * Ends the session for good. Returns the stored record, so that its refresh token can be revoked.
 * @param end a logout, or an end by the access list
 */
export function logOut<Record>(
  cell: Cell<Record> | undefined,
  knownRev: number,
  end = LOGGED_OUT
): Step<Record, { readonly rev: number; readonly record: Record } | undefined> {
  if (cell?.entry.isFinal) return { result: undefined }
  const rev = Math.max(cell?.entry.rev ?? 0, knownRev)
  const result = cell?.record === undefined ? undefined : { rev: cell.entry.rev, record: cell.record }
  return { cell: { entry: overAt(rev, end, true) }, message: 'loggedOut', result }
}

/**
 * If a cell has lost data, returns the cell with the revision and record that the caller knows, and with a recovery time.
 * Otherwise returns the same cell.
 */
function repair<Record>(
  cell: Cell<Record> | undefined,
  now: number,
  { rev, record, recordRev }: Known<Record>,
  recoveryMs: number
): Cell<Record> | undefined {
  const newest = recordRev === rev ? record : undefined
  const entry = cell?.entry
  if (rev === 0 || entry?.isFinal || (entry && entry.rev > rev)) return cell
  const isComplete = entry && (entry.over !== undefined || entry.hasRecord || newest === undefined)
  if (entry?.rev === rev && isComplete) return cell
  const until = now + (newest === undefined ? TIMES.lostRecordMs : recoveryMs)
  const repaired = entryOf({
    rev,
    hasRecord: newest !== undefined,
    over: undefined,
    isFinal: undefined,
    lease: entry?.lease,
    notBefore: { until, why: 'loss' },
    suspect: undefined
  })
  return { entry: repaired, record: newest }
}

function pauseFor(pauseMs: number, now: number): Entry['notBefore'] {
  if (pauseMs <= 0) return undefined
  return { until: now + Math.min(Math.round(pauseMs), TIMES.maxPauseMs), why: 'failure' }
}
