/**
 * Finds the sessions of a person, or of one login session at the provider. The store knows a session only by its id, so this
 * index has lists of ids. It is kept only with the setting `platform.backChannelLogout`.
 *
 * A session is in two lists. One is the list of its `sub`. The other is the list of its `sid`, or, if its ID token had no
 * `sid`, the list of all such sessions of the `sub`. The name of a list is a keyed hash, so it does not show the person.
 */
import type { Keyring } from '../session/keyring.js'
import type { Identity, SessionRecord } from '../session/record.js'
import type { IndexScripts } from './index-scripts.js'

/** Names sessions: those of a login session at the provider (`sid`), or all sessions of a person (`sub` alone). */
export interface SessionsOf {
  readonly iss: string
  readonly sid?: string | undefined
  readonly sub?: string | undefined
}

/** `claim`, `keepClaim` and `release` are about the tokens of logouts, and the scripts do the whole work. */
export interface SessionIndex extends Pick<IndexScripts, 'claim' | 'keepClaim' | 'release'> {
  /**
   * Adds a session to its lists, or renews its lifetime there. Returns false if the provider has ended the login of the
   * session since its ID token was issued. The session then is in no list.
   * @param issuedAt the `iat` of the ID token of a new login, in seconds since the epoch
   * @throws RedisUnavailableError, like all functions of the index
   */
  join(session: SessionRecord, issuedAt: number | undefined): Promise<boolean>
  /**
   * Returns the ids of the named sessions.
   * @param issuedAt the `iat` of a logout token, in seconds since the epoch. `join` then rejects logins whose ID token
   *   is not newer, because such a login may be in progress.
   */
  find(of: SessionsOf, issuedAt: number | undefined): Promise<readonly string[]>
  /** Removes sessions that have been logged out from the lists whose names are known. They expire in all others. */
  leave(of: SessionsOf, ids: readonly string[]): Promise<void>
}

export function createSessionIndex(scripts: IndexScripts, keyring: Pick<Keyring, 'hasher'>): SessionIndex {
  const hasher = keyring.hasher('session index')

  // A session may have joined its list before the secret was replaced.
  function listsOf(names: readonly string[]): readonly string[] {
    return names.flatMap(name => hasher.all(name))
  }

  return {
    async join({ id, identity }, issuedAt) {
      if (!identity) return true
      const lists = ownNames(identity).map(name => hasher.newest(name))
      const joined = await Promise.all(lists.map(list => scripts.join(list, id, issuedAt)))
      if (joined.every(hasJoined => hasJoined)) return true
      await Promise.all(lists.map(list => scripts.leave(list, [id])))
      return false
    },
    async find(of, issuedAt) {
      const found = await Promise.all(listsOf(namesOf(of)).map(list => scripts.find(list, issuedAt)))
      return [...new Set(found.flat())]
    },
    async leave(of, ids) {
      const { iss, sub } = of
      const names = new Set([...namesOf(of), ...(sub === undefined ? [] : [nameOf('sub', iss, sub)])])
      await Promise.all(listsOf([...names]).map(list => scripts.leave(list, ids)))
    },
    claim: scripts.claim,
    keepClaim: scripts.keepClaim,
    release: scripts.release
  }
}

/** Returns the names of the lists of a session. */
function ownNames({ iss, sub, sid }: Identity): readonly string[] {
  return [nameOf('sub', iss, sub), sid === undefined ? nameOf('sub without sid', iss, sub) : nameOf('sid', iss, sid)]
}

/** Returns the names of the lists that together contain the named sessions. */
function namesOf({ iss, sub, sid }: SessionsOf): readonly string[] {
  if (sid === undefined) return sub === undefined ? [] : [nameOf('sub', iss, sub)]
  // A session whose ID token had no `sid` may belong to the named login session, so it ends, too.
  return [nameOf('sid', iss, sid), ...(sub === undefined ? [] : [nameOf('sub without sid', iss, sub)])]
}

function nameOf(kind: 'sub' | 'sid' | 'sub without sid', iss: string, value: string): string {
  return JSON.stringify([kind, iss, value])
}
