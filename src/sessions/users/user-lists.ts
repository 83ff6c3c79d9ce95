/**
 * The lists of the sessions of a user, or of a login session at the provider. A session is in two lists. One contains all sessions
 * with the same `sub`. The second is the list of all sessions with the same `sid`. If the ID token of the session had no `sid`, the
 * second list has all sessions of this user whose ID token had no `sid`. The name of a list is a keyed hash, so the name does not
 * reveal the user.
 */
import { type Clock, wait } from '../../base/clock.js'
import type { Hasher } from '../../cookie/keyring.js'
import type { Identity, SessionRecord } from '../../cookie/session-record.js'
import { ignoreUnavailable, type Rule, StoreUnavailableError, type Values } from '../cells.js'
import type { Sessions } from '../create-sessions.js'

/** Describes a set of sessions: those of a login session at the provider (`sid`), or all sessions of a user (`sub` alone). */
export interface SessionsOf {
  readonly iss: string
  readonly sid?: string | undefined
  readonly sub?: string | undefined
}

type SignedIn = NonNullable<Identity['signedIn']>

export interface ListEntry {
  readonly id: string
  readonly signedIn: SignedIn
  /** The time at which the session last joined the list, in milliseconds on the clock of the store. */
  readonly joinedAt: number
}

export interface UserList {
  /** The sessions, ordered by `joinedAt`. */
  readonly members: readonly ListEntry[]
  /**
   * The `iat` of the latest logout token, in seconds since the epoch. A session of this list is over if its user signed in before
   * this time.
   */
  readonly loggedOutAt?: number
}

const MAX_MEMBERS = 1000
// A login reads this many of the oldest members of a full list, and as many others.
const READ = 16
const CONFLICTS = 10
const MAX_CONFLICT_MS = 50

export interface UserListsDependencies {
  readonly lists: Values<UserList>
  readonly sessions: Pick<Sessions, 'end' | 'known' | 'read'>
  readonly hasher: Hasher
  readonly clock: Clock
  /** The lifetime of a session cookie, in milliseconds. */
  readonly maxAgeMs: number
}

function nothing(): void {}

/** `full` has the other members of a list that is full. Then the session has not joined yet. */
interface Joined {
  readonly full?: readonly ListEntry[]
  readonly hasJoined?: boolean
  readonly dropped?: readonly ListEntry[]
}

export function createUserLists({ lists, sessions, hasher, clock, maxAgeMs }: UserListsDependencies) {
  /** For each list, a promise that resolves when the last change by this process has ended. It never rejects. */
  const turns = new Map<string, Promise<void>>()

  /**
   * Changes a list. Many sessions of one user may join at the same time, so this process makes its changes one after the other,
   * and repeats a change that conflicts with another process.
   */
  function change<Result>(list: string, rule: Rule<UserList, Result>): Promise<Result> {
    const previous = turns.get(list) ?? Promise.resolve()
    const work = previous.then(() => untilUnchanged(list, rule))
    const turn = work.then(nothing, nothing)
    turns.set(list, turn)
    void turn.then(() => turns.get(list) === turn && turns.delete(list))
    return work
  }

  async function untilUnchanged<Result>(list: string, rule: Rule<UserList, Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await lists.change(list, rule)
      } catch (error) {
        const isConflict = error instanceof StoreUnavailableError && error.problem === 'conflict'
        if (!isConflict || attempt === CONFLICTS) throw error
        await wait(clock, Math.random() * MAX_CONFLICT_MS)
      }
    }
  }

  /**
   * Adds a session to a list, or moves it to the end. Returns false if the user has been signed out at the provider since this
   * login.
   */
  async function joinList(list: string, session: SessionRecord): Promise<boolean> {
    const { id } = session
    const signedIn = signInTimesOf(session)
    /** @param over the members that are over. Undefined if they are not known yet; then a full list does not change. */
    const join = (over?: ReadonlySet<string>) =>
      change<Joined>(list, (content, now) => {
        const { members, loggedOutAt } = content ?? { members: [] }
        if (loggedOutAt !== undefined && !isAfter(signedIn, loggedOutAt)) return { result: { hasJoined: false } }
        const others = members.filter(member => member.id !== id && now - member.joinedAt < 2 * maxAgeMs)
        if (others.length >= MAX_MEMBERS && !over) return { result: { full: others } }
        const all = [...others.filter(other => !over?.has(other.id)), { id, signedIn, joinedAt: now }]
        const dropped = all.slice(0, Math.max(0, all.length - MAX_MEMBERS))
        return { result: { hasJoined: true, dropped }, cell: { ...content, members: all.slice(-MAX_MEMBERS) } }
      })
    const first = await join()
    const { hasJoined = false, dropped = [] } = first.full ? await join(await overAmong(first.full)) : first
    // A dropped session would survive a logout of all sessions of the user, so log it out now.
    for (const member of dropped) await sessions.end({ id: member.id })
    return hasJoined
  }

  /**
   * Returns the ids of members that are over, so that no live session has to be dropped. Reads only the cells of the oldest members
   * and of a few random ones, because a login must not read a thousand cells. If none of them is over, nearly all of the list is
   * live.
   */
  async function overAmong(members: readonly ListEntry[]): Promise<ReadonlySet<string>> {
    const from = READ + Math.floor(Math.random() * (members.length - 2 * READ))
    const found = await Promise.all(
      [...members.slice(0, READ), ...members.slice(from, from + READ)].map(async ({ id }) => {
        const cell = await sessions.read(id, false).catch(ignoreUnavailable)
        return cell?.entry.over !== undefined && id
      })
    )
    const known = members.filter(({ id }) => sessions.known(id).kind === 'over').map(({ id }) => id)
    return new Set([...known, ...found.filter(id => id !== false)])
  }

  async function remove(list: string, ids: ReadonlySet<string>): Promise<void> {
    await change(list, content => {
      if (!content?.members.some(({ id }) => ids.has(id))) return { result: undefined }
      return { result: undefined, cell: { ...content, members: content.members.filter(({ id }) => !ids.has(id)) } }
    })
  }

  return {
    /**
     * Adds a session to its lists, or moves it to their ends. Returns false if the user has been signed out at the provider since
     * this login.
     */
    async join(session: SessionRecord): Promise<boolean> {
      const { identity } = session
      if (!identity) return true
      const joined = await Promise.all(namesOfSession(identity).map(name => joinList(hasher.newest(name), session)))
      return joined.every(hasJoined => hasJoined)
    },
    remove,
    /**
     * Returns the members of a list that a logout ends.
     * @param issuedAt the `iat` of a logout token. If given, it is stored, so that no login from before this time can join.
     * @param endsAll true if the logout also ends the sessions whose user signed in after `issuedAt`
     */
    endedBy: (list: string, issuedAt: number | undefined, endsAll: boolean): Promise<readonly ListEntry[]> =>
      change<readonly ListEntry[]>(list, content => {
        const { members, loggedOutAt = 0 } = content ?? { members: [] }
        const result = members.filter(({ signedIn }) => endsAll || issuedAt === undefined || signedIn.iat <= issuedAt)
        if (issuedAt === undefined || issuedAt <= loggedOutAt) return { result }
        return { result, cell: { members, loggedOutAt: issuedAt } }
      })
  }
}

function signInTimesOf({ identity, loggedInAt }: SessionRecord): SignedIn {
  return identity?.signedIn ?? { iat: Math.floor(loggedInAt / 1000) }
}

/**
 * Takes the times of a login whose session is not in a list yet. Returns true if this login began after a logout at the provider.
 * Both times are whole seconds, so equal times do not show which event came first. In this case, the login counts as later only
 * if the user also entered the password in that second (`auth_time`).
 */
function isAfter({ iat, authTime }: SignedIn, loggedOutAt: number): boolean {
  return iat > loggedOutAt || (iat === loggedOutAt && authTime === loggedOutAt)
}

/** Returns the names of the lists of a session. */
export function namesOfSession({ iss, sub, sid }: Identity): readonly string[] {
  return [
    cellName('sub', iss, sub),
    sid === undefined ? cellName('sub without sid', iss, sub) : cellName('sid', iss, sid)
  ]
}

/** Returns the names of the lists that together contain the described sessions. */
export function namesOf({ iss, sub, sid }: SessionsOf): readonly string[] {
  if (sid === undefined) return sub === undefined ? [] : [cellName('sub', iss, sub)]
  // A session whose ID token had no `sid` may belong to this login session, so it must be ended, too.
  return [cellName('sid', iss, sid), ...(sub === undefined ? [] : [cellName('sub without sid', iss, sub)])]
}

/** Returns the name of a list or of the cell of a user name. The key in the store is a hash of it. */
export function cellName(kind: 'sub' | 'sid' | 'sub without sid' | 'name' | 'email', iss: string, value: string) {
  return JSON.stringify([kind, iss, value])
}
