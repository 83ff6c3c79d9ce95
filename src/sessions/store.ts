/**
 * Runs the rules (`transitions.ts`) on the cells of sessions. This process remembers what every cell shows, because Redis may lose
 * it.
 */
import type { Clock } from '../base/clock.js'
import type { SessionRecord } from '../cookie/session-record.js'
import { apply, type Cells, type Message, type Rule, StoreUnavailableError } from './cells.js'
import type { ProcessMemory } from './memory.js'
import type { Current, SessionKey } from './session-types.js'
import type { Cell, End, Found, Owner } from './transitions.js'
import * as rules from './transitions.js'

export interface StoreDependencies {
  readonly cells: Cells<Cell<SessionRecord>, SessionKey>
  readonly memory: ProcessMemory
  readonly clock: Clock
  /** Returns the `Owner` that this process writes into its leases. */
  readonly me: () => Owner
  /**
   * The recovery time, in milliseconds. It begins with each new connection and with each data loss. Until it has passed, only
   * logins get a lease. Without Redis, it is 0.
   */
  readonly recoveryMs: number
  /** Revokes a refresh token that will no longer be used, because its session was ended before the token could be stored. */
  readonly revoke: (refreshToken: string) => void
}

type SessionCell = Cell<SessionRecord>
type SessionRule<Result> = (cell: SessionCell | undefined, now: number) => rules.Step<SessionRecord, Result>

interface RunOptions {
  readonly isWhole?: boolean
  readonly mayFail?: boolean
  readonly replacesUnreadable?: boolean
}

export type SessionStore = ReturnType<typeof createSessionStore>

export function createSessionStore({ cells, memory, me, revoke }: Omit<StoreDependencies, 'clock' | 'recoveryMs'>) {
  const { owner } = me()
  // A change by a request handler uses a separate owner name. With the same name, the change would get the lease that a refresh
  // in the same process already has.
  const changeOwner = `${owner}/change`

  function run<Result>({ id, key }: SessionKey, rule: SessionRule<Result>, options: RunOptions = {}): Promise<Result> {
    const applied: Rule<SessionCell, Result> = (cell, now) => {
      const { message, ...step } = rule(cell, now)
      if (!message || !step.cell) return step
      const { rev, over = rules.LOGGED_OUT } = step.cell.entry
      return { ...step, message: message === 'lost' ? { kind: message, id, rev, from: owner } : endOf(id, rev, over) }
    }
    const last = options.isWhole ? undefined : memory.seen(id)
    return apply(cells, { id, key }, applied, { ...options, last, onSeen: snapshot => memory.see(id, snapshot) })
  }

  /**
   * Remembers the result of a rule. If the result only says that there is a newer revision, also reads the record of that
   * revision.
   * @param late a record that could not be stored. If its response came after the end of its lease, another process has stored
   *   other tokens as the same revision. Otherwise, a restore of this process has stored the record meanwhile.
   */
  async function learn<Result extends { readonly kind: string }>(
    session: SessionKey,
    result: Result | Found<SessionRecord>,
    late?: SessionRecord
  ): Promise<Result | Found<SessionRecord>> {
    const { id } = session
    if (isOver(result) && result.isFinal) noteEnd(session, result.end)
    if (!isNewer(result)) return result
    if (result.record) {
      memory.remember(id, result.rev, result.record)
      return result
    }
    const cell = await readCell(session, true)
    if (late && cell?.record && cell.record.fields.refresh_token !== late.fields.refresh_token) memory.drop(late)
    const found = rules.find(cell, memory.known(id))
    if (isNewer(found) && !found.record) throw new StoreUnavailableError('unreadable')
    return learn(session, found)
  }

  /** Remembers that another process has ended a session for good. That process did not know a result that is not stored yet. */
  function noteEnd(session: SessionKey, end: End): void {
    const unsaved = memory.logOut(session, true, end)
    if (unsaved && end.reason !== 'replaced') revoke(unsaved.fields.refresh_token)
  }

  /** Reads and remembers the cell of a session. */
  async function readCell({ id, key }: SessionKey, isWhole: boolean): Promise<SessionCell | undefined> {
    const snapshot = await cells.read({ id, key }, isWhole)
    if (snapshot.isUnreadable) throw new StoreUnavailableError('unreadable')
    memory.see(id, snapshot)
    return snapshot.content
  }

  function endOf(id: string, rev: number, end: End): Message {
    // The length of a message is limited, and its receivers do not need the details of a denial.
    const shortened = end.reason === 'denied' ? { reason: end.reason, problem: end.problem, missing: [] } : end
    return { kind: 'loggedOut', id, rev, from: owner, end: shortened }
  }

  return {
    now: cells.now,
    owner,
    changeOwner,
    run,
    learn,
    noteEnd,
    endOf,
    /** Reads a session, usually with one command, and remembers where it stands. */
    async find(session: SessionKey): Promise<Found<SessionRecord>> {
      const { id } = session
      const cell = await readCell(session, memory.recordOf(id) === undefined)
      const found = rules.find(cell, memory.known(id))
      // Most requests learn nothing, and each promise costs time.
      return found.kind === 'current' ? found : learn(session, found)
    },
    /**
     * Returns the cell of a session, without remembering it. If the session is kept in Redis, the cell comes without its record,
     * because only the cookie has the key that decrypts the record.
     * @param isWhole false if the entry is enough
     * @throws StoreUnavailableError
     */
    async read(id: string, isWhole = true): Promise<SessionCell | undefined> {
      const { content, isUnreadable } = await cells.read({ id }, isWhole)
      if (isUnreadable) throw new StoreUnavailableError('unreadable')
      return content
    },
    /** Returns what this process knows of a session. */
    known(id: string): Current {
      const logout = memory.logoutOf(id)
      if (logout) return { kind: 'over', end: logout.end }
      const record = memory.newest(id)
      if (!record) return { kind: 'unavailable', why: 'pending', retryAfterSeconds: 1, record }
      return memory.isUnsaved(id) ? { kind: 'live', record, isUnsaved: true } : { kind: 'live', record }
    }
  }
}

function isOver(result: { readonly kind: string }): result is rules.Over {
  return result.kind === 'over'
}

function isNewer(result: { readonly kind: string }): result is rules.Newer<SessionRecord> {
  return result.kind === 'newer'
}
