/**
 * What the store keeps. Sessions are in cells, which are changed only by compare-and-swap. The lists of each user's sessions, user
 * names, used logout tokens and host slots (`host-slots.ts`) are values. Both are in Redis, in the memory of a process without
 * Redis, or, in tests, in a simulated store.
 */
import { type FailureReason, KnownError } from '../base/failure-reasons.js'
import type { End } from './transitions.js'

/** Why the store is unavailable. */
const PROBLEMS = {
  /** Redis is unreachable, too slow, or refuses the command. */
  redis: { message: 'Redis is unavailable', reason: 'redis_unavailable' },
  /** This cell has the wrong type, or this process does not have the secret that encrypted it. */
  unreadable: {
    message: 'the stored data cannot be read: it was encrypted with another secret, or it has the wrong type',
    reason: 'stored_data_unreadable'
  },
  /** Other processes changed this cell during every attempt. */
  conflict: { message: 'other processes are changing the same data', reason: 'redis_unavailable' },
  /** The memory for sessions is full. */
  full: { message: 'this process has reached its limit of sessions', reason: 'session_limit_reached' }
} satisfies Readonly<Record<string, { message: string; reason: FailureReason }>>

/** The store is unavailable. The same request can be repeated later. */
export class StoreUnavailableError extends KnownError {
  override readonly name = 'StoreUnavailableError'
  readonly problem: keyof typeof PROBLEMS
  override readonly reason: FailureReason
  /** The time in seconds after which the same request may succeed. */
  readonly retryAfterSeconds: number

  constructor(problem: keyof typeof PROBLEMS) {
    super(PROBLEMS[problem].message)
    this.problem = problem
    this.reason = PROBLEMS[problem].reason
    // Only the operator can fix unreadable data, so clients wait longer before the next attempt.
    this.retryAfterSeconds = problem === 'unreadable' ? 5 : 1
  }
}

/** Rethrows every error except StoreUnavailableError. */
export function ignoreUnavailable(error: unknown): undefined {
  if (!(error instanceof StoreUnavailableError)) throw error
  return undefined
}

/** A cell at the time at which it was read or written. */
export interface Snapshot<Content> {
  /** If two versions of a cell are equal, their content is equal, too. */
  readonly version: unknown
  readonly content: Content | undefined
  /** True if there is a cell, but this process cannot decrypt it. */
  readonly isUnreadable?: boolean
}

/**
 * A message to all processes. A message may get lost, so the store must also work without messages.
 * - `lost`: Redis has lost data of this session. Every process that knows the revision `rev` or a newer one stores the session again.
 * - `loggedOut`: the session is over for good
 * - `pause`, `loginPause`: the identity provider asked for a pause, so no process sends a token request of a refresh or a login for
 *   `ms` milliseconds
 */
export type Message =
  | { readonly kind: 'lost'; readonly id: string; readonly rev: number; readonly from: string }
  | { readonly kind: 'loggedOut'; readonly id: string; readonly rev: number; readonly from: string; readonly end: End }
  | { readonly kind: 'pause' | 'loginPause'; readonly ms: number }

/** `Content` is the content of a cell. `Key` is what is needed to find and decrypt the cell. */
export interface Cells<Content, Key> {
  /** Returns the time of the store, in whole milliseconds since the epoch. */
  now(): number
  /**
   * @param isWhole false if the entry is enough, so the record of a session is not read
   * @throws StoreUnavailableError, like all functions of the store
   */
  read(key: Key, isWhole: boolean): Promise<Snapshot<Content>>
  /**
   * If the cell is still the expected one, and `now` is close to the clock of the store, replaces the cell and publishes the
   * message in the same step. Otherwise returns the current cell.
   * @param mayFail true if a full store may refuse the change
   */
  swap(key: Key, expected: Snapshot<Content>, next: Content, options: SwapOptions): Promise<Swapped<Content>>
}

interface SwapOptions {
  /** The time that the rule used, from `Cells.now`. */
  readonly now: number
  readonly message: Message | undefined
  readonly mayFail: boolean
}

interface Swapped<Content> {
  readonly isDone: boolean
  readonly snapshot: Snapshot<Content>
}

/** A rule returns a result, and the new content if the cell changes. */
export type Rule<Content, Result> = (
  content: Content | undefined,
  now: number
) => { readonly result: Result; readonly cell?: Content; readonly message?: Message | undefined }

interface ApplyOptions<Content> {
  /** The cell as this process last saw it. If undefined, the cell is read. */
  readonly last?: Snapshot<Content> | undefined
  readonly isWhole?: boolean
  readonly mayFail?: boolean
  /** True if the rule may replace a cell that cannot be decrypted. */
  readonly replacesUnreadable?: boolean
  /** Called with each cell that was read or written. */
  readonly onSeen?: (snapshot: Snapshot<Content>) => void
}

/** The values of one kind, by their names. */
export interface Values<Value> {
  /** Returns the time of the store, in whole milliseconds since the epoch. */
  now(): number
  /** @throws StoreUnavailableError, also if this process cannot decrypt the value */
  read(name: string): Promise<Value | undefined>
  /**
   * Runs a rule on a value, and stores the value that the rule returns, if it returns one.
   * @throws StoreUnavailableError
   */
  change<Result>(name: string, rule: Rule<Value, Result>): Promise<Result>
}

const ATTEMPTS = 5

/**
 * Runs a rule on a cell, and stores the new content that the rule returns. Runs the rule again if another process has changed the
 * cell meanwhile.
 */
export async function apply<Content, Key, Result>(
  cells: Cells<Content, Key>,
  key: Key,
  rule: Rule<Content, Result>,
  options: ApplyOptions<Content> = {}
): Promise<Result> {
  const { isWhole = false, mayFail = false, replacesUnreadable = false, onSeen } = options
  let snapshot = options.last
  let isRead = false
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (!snapshot) {
      snapshot = await cells.read(key, isWhole)
      isRead = true
    }
    if (snapshot.isUnreadable && !replacesUnreadable) throw new StoreUnavailableError('unreadable')
    if (isRead) onSeen?.(snapshot)
    const now = cells.now()
    const { result, cell, message } = rule(snapshot.content, now)
    if (cell === undefined) {
      // `options.last` may be outdated. A swap would then fail and show this, but a rule that changes nothing makes no swap, so
      // the outdated cell would stay unnoticed. So read the cell and run the rule again.
      if (isRead) return result
      snapshot = undefined
      continue
    }
    const swapped = await cells.swap(key, snapshot, cell, { now, message, mayFail })
    if (swapped.isDone) {
      onSeen?.(swapped.snapshot)
      return result
    }
    // A refused swap returns the entry only, so the record has to be read again. A cell that could not be read may be too large.
    snapshot = isWhole && !snapshot.isUnreadable ? undefined : swapped.snapshot
    isRead = true
  }
  throw new StoreUnavailableError('conflict')
}
