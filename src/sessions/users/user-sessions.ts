/**
 * Finds the sessions of a user, or of one login session at the provider. The store finds a session only by its id. So each user
 * and each login session has a list of session ids, which is stored in a cell (`cells.ts`). The lists are kept only with the
 * setting `platform.backchannelLogout`.
 */

import type { SessionRecord } from '../../cookie/session-record.js'
import { ignoreUnavailable, StoreUnavailableError, type Values } from '../cells.js'
import type { Sessions } from '../create-sessions.js'
import { createRetries } from '../restores.js'
import {
  cellName,
  createUserLists,
  type ListEntry,
  namesOf,
  namesOfSession,
  type SessionsOf,
  type UserListsDependencies
} from './user-lists.js'
import { createUserNames, nameOfUser, type UserNamesDependencies } from './user-names.js'

export type { SessionsOf, UserList } from './user-lists.js'

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

export type UserSessions = ReturnType<typeof createUserSessions>

interface UserSessionsDependencies extends UserListsDependencies, UserNamesDependencies {
  readonly usedTokens: Values<true>
  readonly sessions: Pick<Sessions, 'end' | 'known' | 'newest' | 'read'>
  readonly revoke: (refreshToken: string) => void
}

const LOGGED_OUT_IN_PARALLEL = 100

export function createUserSessions(dependencies: UserSessionsDependencies) {
  const { usedTokens, sessions, revoke, hasher, clock, maxAgeMs } = dependencies
  const lists = createUserLists(dependencies)
  const names = createUserNames(dependencies)
  const retries = createRetries(clock)

  /**
   * Adds a session to its lists in the background, and tries again until the lists are stored. Ends the session if the provider has
   * signed the user out since this login.
   */
  function joinUntilStored(session: SessionRecord): void {
    const work = async () => {
      try {
        if (await lists.join(session)) return
        const { record = session } = await sessions.end(session)
        revoke(record.fields.refresh_token)
      } catch (error) {
        // If a list cannot be decrypted, only the operator can fix the problem, so give up. The session then joins at a later
        // refresh.
        if (error instanceof StoreUnavailableError && error.problem !== 'unreadable') throw error
      }
    }
    retries.start(session.id, work)
  }

  async function logOutEach(ids: readonly string[]): Promise<readonly SessionRecord[]> {
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
    return records
  }

  return {
    /**
     * Adds the session of a new login to the lists of its user and its `sid`. Returns false if the user has been signed out at the
     * provider since this login. A logout that runs in parallel cannot miss the session: either the logout finds it in the list, or
     * this function finds the time of the logout. If the store is unavailable, the session joins later.
     */
    async join(session: SessionRecord): Promise<boolean> {
      try {
        return await lists.join(session)
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
     * True if a quarter of the lifetime of a session has passed since it last joined its lists, so that it should join them again.
     */
    shouldJoin: ({ identity, listedAt = 0 }: SessionRecord, now: number): boolean =>
      identity !== undefined && now - listedAt > maxAgeMs / 4,
    /** Removes a logged-out session from its lists, in the background. */
    leave({ id, identity }: SessionRecord): void {
      const names = identity ? namesOfSession(identity).flatMap(hasher.all) : []
      for (const list of names) lists.remove(list, new Set([id])).catch(() => {})
    },
    /**
     * Stores the names in these claims in the background, so that `listed` finds the user by them. A name that cannot be stored now
     * is added at the next login or profile request of the user.
     */
    addNames: names.add,
    listed: createListing(dependencies),
    /**
     * Logs out all sessions that match the description `of`. Returns their ids, and the newest records of those that the store or this
     * process has.
     * @param issuedAt the `iat` of a logout token, in seconds since the epoch. If given, ends all sessions of the `sid`, and of the
     *   other sessions only those whose user signed in at this time or earlier. Otherwise an old logout token could end the newer
     *   logins of a user. If a login that began before this time is still in progress, it cannot complete.
     * @throws StoreUnavailableError if the lists cannot be read, or if a logout is not stored. The same call can be repeated.
     */
    async logOutAll(of: SessionsOf, issuedAt?: number) {
      const names = namesOf(of).flatMap(hasher.all)
      // The provider has ended this login session, so every session of it is over, whenever it was created.
      const ofSid = new Set(of.sid === undefined ? [] : hasher.all(cellName('sid', of.iss, of.sid)))
      const found = await Promise.all(names.map(list => lists.endedBy(list, issuedAt, ofSid.has(list))))
      const ids = [...new Set(found.flat().map(({ id }) => id))]
      const records = await logOutEach(ids)
      const ended = new Set(ids)
      const ofUser = of.sub === undefined ? [] : hasher.all(cellName('sub', of.iss, of.sub))
      for (const list of new Set([...names, ...ofUser])) lists.remove(list, ended).catch(() => {})
      return { ids, records }
    },
    /**
     * True if a logout token was used before.
     * @param tokenId the issuer and the `jti` of the token
     * @throws StoreUnavailableError
     */
    isUsed: async (tokenId: string): Promise<boolean> => (await usedTokens.read(hasher.newest(tokenId))) !== undefined,
    /**
     * Records that a logout token has been used. Call this function after the sessions have ended. If the store is unavailable, does
     * nothing.
     */
    async markUsed(tokenId: string): Promise<void> {
      const used = usedTokens.change(hasher.newest(tokenId), () => ({ result: undefined, cell: true as const }))
      await used.catch(ignoreUnavailable)
    },
    close: retries.close
  }
}

/** Creates the function that lists the live sessions of users. */
function createListing({ lists, names, sessions, hasher, maxAgeMs }: UserSessionsDependencies) {
  /**
   * Returns the contents of the cells with this name. Names are hashed with the session secret, so look up the hash of the name
   * with each secret.
   */
  async function readAll<Value>(values: Values<Value>, name: string): Promise<readonly Value[]> {
    const found = await Promise.all(hasher.all(name).map(hash => values.read(hash)))
    return found.filter(value => value !== undefined)
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

  /**
   * Returns the selected users who have a live session. With `by: 'any'`, a user with exactly this `sub` is the only result,
   * because other users can choose this `sub` as their name.
   * @throws StoreUnavailableError
   */
  return async function listed(iss: string, { by, value }: UserSelector): Promise<readonly UserWithSessions[]> {
    const bySub = by === 'any' || by === 'sub' ? await withSessions([value]) : []
    if (by === 'sub' || bySub.length > 0) return bySub
    return withSessions((await readAll(names, nameOfUser(by === 'email' ? 'email' : 'name', iss, value))).flat())

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
  }
}
