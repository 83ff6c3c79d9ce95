/**
 * Finds the sessions of a user, or of one login session at the provider. The store finds a session only by its id. So each user
 * and each login session has a list of session ids, which is stored in a cell (`cells.ts`). The lists are kept only with the
 * setting `platform.backChannelLogout`.
 *
 * A session is in two lists. One list contains all sessions with the same `sub`. The second is the list of all sessions with the
 * same `sid`. If the ID token of the session had no `sid`, the second list has all sessions of this user whose ID token had no
 * `sid`. The name of a list is a keyed hash, so the name does not reveal the user.
 */

import { type Clock, wait } from '../base/clock.js'
import type { Hasher } from '../cookie/keyring.js'
import type { Identity, SessionRecord } from '../cookie/record.js'
import { apply, type Cells, ignoreUnavailable, type Rule, StoreUnavailableError } from './cells.js'
import type { ProcessSessions } from './create-sessions.js'
import { createRetries } from './restores.js'

/** Describes a set of sessions: those of a login session at the provider (`sid`), or all sessions of a user (`sub` alone). */
export interface SessionsOf {
  readonly iss: string
  readonly sid?: string | undefined
  readonly sub?: string | undefined
}

type SignedIn = NonNullable<Identity['signedIn']>

interface ListEntry {
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

export interface LoggedOut {
  readonly ids: readonly string[]
  /** The newest records of these sessions, except those that neither the store nor this process has. */
  readonly records: readonly SessionRecord[]
}

/** A session in the list of its user. All times are in milliseconds since the epoch. */
export interface ListedSession {
  readonly loggedInAt: number
  /**
   * No cookie of the session was written after this time. So the session expires no later than one cookie lifetime after this
   * time.
   */
  readonly writtenBy: number
}

/** Describes a user by a `sub`, by one of the names, or, with `any`, by either. */
export interface UserSelector {
  readonly by: 'sub' | 'name' | 'email' | 'any'
  readonly value: string
}

export interface UserWithSessions {
  readonly sub: string
  readonly sessions: readonly ListedSession[]
}

interface UserSessionsDependencies {
  readonly lists: Cells<UserList>
  /** For each name, the `sub` of every user with this name. The user who was added last comes last. */
  readonly names: Cells<readonly string[]>
  readonly usedTokens: Cells<true>
  readonly sessions: Pick<ProcessSessions, 'end' | 'newest' | 'read'>
  readonly hasher: Hasher
  readonly clock: Clock
  /** The lifetime of a session cookie, in milliseconds. */
  readonly maxAgeMs: number
}

export type UserSessions = ReturnType<typeof createUserSessions>

const MAX_MEMBERS = 1000
const MAX_USERS_OF_NAME = 100
const LOGGED_OUT_IN_PARALLEL = 100
const CONFLICTS = 10
const MAX_CONFLICT_MS = 50

function nothing(): void {}

export function createUserSessions(dependencies: UserSessionsDependencies) {
  const { lists, names, usedTokens, sessions, hasher, clock, maxAgeMs } = dependencies
  const retries = createRetries(clock)
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
        return await apply(lists, list, rule)
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
    const { hasJoined, dropped } = await change(list, (content, now) => {
      const { members, loggedOutAt } = content ?? { members: [] }
      if (loggedOutAt !== undefined && !isAfter(signedIn, loggedOutAt))
        return { result: { hasJoined: false, dropped: [] } }
      const others = members.filter(member => member.id !== id && now - member.joinedAt < 2 * maxAgeMs)
      const all = [...others, { id, signedIn, joinedAt: now }]
      const dropped = all.slice(0, Math.max(0, all.length - MAX_MEMBERS))
      return { result: { hasJoined: true, dropped }, cell: { ...content, members: all.slice(-MAX_MEMBERS) } }
    })
    // A dropped session would survive a logout of all sessions of the user, so log it out now.
    for (const member of dropped) await sessions.end({ id: member.id })
    return hasJoined
  }

  /** If a list is full, removes the sessions that are over, so that no live session has to be dropped. */
  async function makeRoom(list: string): Promise<void> {
    const { content } = await lists.read(list, true)
    if (!content || content.members.length < MAX_MEMBERS) return
    const cells = await Promise.all(content.members.map(({ id }) => sessions.read(id)))
    const isOver = (_: ListEntry, index: number) => cells[index]?.entry.over !== undefined
    await removeFromList(list, new Set(content.members.filter(isOver).map(({ id }) => id)))
  }

  async function removeFromList(list: string, ids: ReadonlySet<string>): Promise<void> {
    await change(list, content => {
      if (!content?.members.some(({ id }) => ids.has(id))) return { result: undefined }
      return { result: undefined, cell: { ...content, members: content.members.filter(({ id }) => !ids.has(id)) } }
    })
  }

  async function join(session: SessionRecord): Promise<boolean> {
    const { identity } = session
    if (!identity) return true
    const joined = await Promise.all(
      listNames(identity).map(async name => {
        const list = hasher.newest(name)
        await makeRoom(list)
        return joinList(list, session)
      })
    )
    return joined.every(hasJoined => hasJoined)
  }

  /** Adds a session to its lists in the background, and tries again until the lists are stored. */
  function joinUntilStored(session: SessionRecord): void {
    const work = async () => {
      try {
        if (!(await join(session))) await sessions.end(session)
      } catch (error) {
        // If a list cannot be decrypted, only the operator can fix the problem, so give up. The session then joins at a later
        // refresh.
        if (error instanceof StoreUnavailableError && error.problem !== 'unreadable') throw error
      }
    }
    retries.start(session.id, work)
  }

  /**
   * Returns the contents of the cells with this name. Names are hashed with the session secret, so look up the hash of the name
   * with each secret.
   */
  async function readAll<Content>(cells: Cells<Content>, name: string): Promise<readonly Content[]> {
    const snapshots = await Promise.all(hasher.all(name).map(hash => cells.read(hash, true)))
    if (snapshots.some(({ isUnreadable }) => isUnreadable)) throw new StoreUnavailableError('unreadable')
    return snapshots.flatMap(({ content }) => content ?? [])
  }

  async function listedSession({ id, signedIn, joinedAt }: ListEntry): Promise<ListedSession | undefined> {
    const cell = await sessions.read(id)
    if (!cell || cell.entry.over !== undefined) return undefined
    const now = lists.now()
    const { record } = cell
    // A request after the expiry of these tokens would have refreshed the session and written a newer record. There is no newer
    // record, so no cookie was written after that time. If the record cannot be decrypted here, use `joinedAt` plus a quarter of
    // the lifetime. Every refresh after that time adds the session to the list again, which changes `joinedAt`, so there was no
    // such refresh.
    const writtenBy = record ? Math.max(record.issuedAt, record.fields.expires_at) : joinedAt + maxAgeMs / 4
    return { loggedInAt: record?.loggedInAt ?? signedIn.iat * 1000, writtenBy: Math.min(now, writtenBy) }
  }

  return {
    /**
     * Adds the session of a new login to the lists of its user and its `sid`. Returns false if the user has been signed out at
     * the provider since this login. A logout that runs in parallel cannot miss the session: either the logout finds it in the
     * list, or this function finds the time of the logout. If the store is unavailable, the session joins later.
     */
    async join(session: SessionRecord): Promise<boolean> {
      try {
        return await join(session)
      } catch (error) {
        ignoreUnavailable(error)
        joinUntilStored(session)
        return true
      }
    },
    /** Adds a session to the lists of its user again, in the background. */
    joinAgain(id: string): void {
      const session = sessions.newest(id)
      if (session?.identity) joinUntilStored(session)
    },
    /**
     * True if a quarter of the lifetime of a session has passed since it last joined its lists, so that it should join them
     * again.
     */
    shouldJoin: ({ identity, listedAt }: SessionRecord, now: number): boolean =>
      identity !== undefined && now - (listedAt ?? 0) > maxAgeMs / 4,
    /** Removes a logged-out session from its lists, in the background. */
    leave({ id, identity }: SessionRecord): void {
      const names = identity ? listNames(identity).flatMap(hasher.all) : []
      for (const list of names) removeFromList(list, new Set([id])).catch(() => {})
    },
    /**
     * Stores the names in these claims in the background, so that `listed` finds the user by them. A name that cannot be stored
     * now is added at the next login or profile request of the user.
     */
    addNames(identity: Identity | undefined, claims: Readonly<Record<string, unknown>>): void {
      if (!identity) return
      const { iss, sub } = identity
      const add: Rule<readonly string[], void> = (subs = []) => {
        const cell = [...subs.filter(other => other !== sub), sub].slice(-MAX_USERS_OF_NAME)
        return { result: undefined, cell }
      }
      const emails = typeof claims.email === 'string' ? [cellName('email', iss, normalized(claims.email))] : []
      const cells = [...emails, ...namesIn(claims).map(name => cellName('name', iss, name))]
      for (const cell of cells) apply(names, hasher.newest(cell), add).catch(() => {})
    },
    /**
     * Returns the selected users who have a live session. A name is an e-mail address, a user name or a display name. Upper and
     * lower case do not matter in names. With `by: 'any'`, a user with exactly this `sub` is the only result, because other users
     * can choose this `sub` as their name.
     * @throws StoreUnavailableError
     */
    async listed(iss: string, { by, value }: UserSelector): Promise<readonly UserWithSessions[]> {
      const bySub = by === 'any' || by === 'sub' ? await withSessions([value]) : []
      if (by === 'sub' || bySub.length > 0) return bySub
      const name = cellName(by === 'email' ? 'email' : 'name', iss, normalized(value))
      return withSessions((await readAll(names, name)).flat())

      async function withSessions(subs: readonly string[]): Promise<readonly UserWithSessions[]> {
        const users = await Promise.all(
          [...new Set(subs)].map(async sub => {
            const members = (await readAll(lists, cellName('sub', iss, sub))).flatMap(({ members }) => members)
            const unique = [...new Map(members.map(member => [member.id, member])).values()]
            const live = (await Promise.all(unique.map(listedSession))).filter(session => session !== undefined)
            return { sub, sessions: live.filter(({ writtenBy }) => writtenBy + maxAgeMs > lists.now()) }
          })
        )
        return users.filter(({ sessions }) => sessions.length > 0)
      }
    },
    /**
     * Logs out all sessions that match the description `of`.
     * @param issuedAt the `iat` of a logout token, in seconds since the epoch. If given, ends all sessions of the `sid`, and of the
     *   other sessions only those whose user signed in at this time or earlier. Otherwise an old logout token could end the newer
     *   logins of a user. If a login that began before this time is still in progress, it cannot complete.
     * @throws StoreUnavailableError if the lists cannot be read, or if a logout is not stored. The same call can be repeated.
     */
    async logOutAll(of: SessionsOf, issuedAt?: number): Promise<LoggedOut> {
      const names = namesOf(of).flatMap(hasher.all)
      // The provider has ended this login session, so every session of it is over, whenever it was created.
      const ofSid = new Set(of.sid === undefined ? [] : hasher.all(cellName('sid', of.iss, of.sid)))
      const found = await Promise.all(
        names.map(list =>
          change<readonly ListEntry[]>(list, content => {
            const { members, loggedOutAt = 0 } = content ?? { members: [] }
            const endsAll = issuedAt === undefined || ofSid.has(list)
            const result = members.filter(({ signedIn }) => endsAll || signedIn.iat <= issuedAt)
            if (issuedAt === undefined || issuedAt <= loggedOutAt) return { result }
            return { result, cell: { members, loggedOutAt: issuedAt } }
          })
        )
      )
      const ids = [...new Set(found.flat().map(({ id }) => id))]
      const records: SessionRecord[] = []
      let isStored = true
      for (let from = 0; from < ids.length; from += LOGGED_OUT_IN_PARALLEL) {
        const some = ids.slice(from, from + LOGGED_OUT_IN_PARALLEL)
        for (const ended of await Promise.all(some.map(id => sessions.end({ id })))) {
          if (ended.record) records.push(ended.record)
          isStored &&= ended.isStored
        }
      }
      if (!isStored) throw new StoreUnavailableError('redis')
      const ended = new Set(ids)
      const ofUser = of.sub === undefined ? [] : hasher.all(cellName('sub', of.iss, of.sub))
      for (const list of new Set([...names, ...ofUser])) removeFromList(list, ended).catch(() => {})
      return { ids, records }
    },
    /**
     * True if a logout token was used before.
     * @param tokenId the issuer and the `jti` of the token
     * @throws StoreUnavailableError
     */
    isUsed: async (tokenId: string): Promise<boolean> =>
      apply(usedTokens, hasher.newest(tokenId), content => ({ result: content !== undefined })),
    /**
     * Records that a logout token has been used. Call this function after the sessions have ended. If the store is unavailable,
     * does nothing.
     */
    async markUsed(tokenId: string): Promise<void> {
      const used = apply(usedTokens, hasher.newest(tokenId), () => ({ result: undefined, cell: true as const }))
      await used.catch(ignoreUnavailable)
    },
    close: retries.close
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
function listNames({ iss, sub, sid }: Identity): readonly string[] {
  return [
    cellName('sub', iss, sub),
    sid === undefined ? cellName('sub without sid', iss, sub) : cellName('sid', iss, sid)
  ]
}

/** Returns the names of the lists that together contain the described sessions. */
function namesOf({ iss, sub, sid }: SessionsOf): readonly string[] {
  if (sid === undefined) return sub === undefined ? [] : [cellName('sub', iss, sub)]
  // A session whose ID token had no `sid` may belong to this login session, so it must be ended, too.
  return [cellName('sid', iss, sid), ...(sub === undefined ? [] : [cellName('sub without sid', iss, sub)])]
}

function cellName(kind: 'sub' | 'sid' | 'sub without sid' | 'name' | 'email', iss: string, value: string): string {
  return JSON.stringify([kind, iss, value])
}

/** Returns the names by which an operator may know the user. Several users can have the same name. */
function namesIn(claims: Readonly<Record<string, unknown>>): readonly string[] {
  const { email, preferred_username, userName, name, given_name, firstName, family_name, lastName } = claims
  const fullName = `${firstName ?? given_name ?? ''} ${lastName ?? family_name ?? ''}`
  const found = [email, preferred_username, userName, name, fullName].filter(value => typeof value === 'string')
  return [...new Set(found.map(normalized))].filter(value => value !== '')
}

function normalized(name: string): string {
  return name.normalize('NFC').trim().toLowerCase()
}
