/** The sessions of a person, or of a login session at the provider, as one process reaches them through the index. */
import type { SessionRecord } from '../session/record.js'
import { ignoreUnavailable, RedisUnavailableError } from './redis-errors.js'
import type { SessionIndex } from './session-index.js'
import type { EndedSession, SessionStore } from './session-store.js'
import { StoreUnavailableError } from './unavailable.js'

// Sessions that a logout of a whole person ends at once.
const ENDED_AT_ONCE = 100

export interface PersonSessions extends Pick<SessionStore, 'logOutAll' | 'claim' | 'keepClaim' | 'release'> {
  /**
   * Adds a session of a new login to the index, after it was stored. A logout at the same time then either finds the session
   * in the index, or this function finds the time of the logout and returns false.
   */
  join(session: SessionRecord, issuedAt: number | undefined): Promise<boolean>
  /** Adds a session to the index again, or renews its lifetime there. No request waits for it. */
  joinInBackground(session: SessionRecord): void
}

/**
 * @param index undefined if nothing needs it
 * @param end logs one session out, and returns its newest record
 */
export function createPersonSessions(
  index: SessionIndex | undefined,
  end: (id: string) => Promise<SessionRecord | undefined>
): PersonSessions {
  async function join(session: SessionRecord, issuedAt: number | undefined): Promise<boolean> {
    // Without Redis, the session is added when Redis is back, or at its next refresh.
    return (await index?.join(session, issuedAt).catch(ignoreUnavailable)) ?? true
  }

  async function use<T>(action: (index: SessionIndex) => Promise<T>): Promise<T> {
    if (!index) throw new TypeError('this store has no index of sessions')
    try {
      return await action(index)
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw new StoreUnavailableError('store')
      throw error
    }
  }

  return {
    join,
    joinInBackground(session) {
      join(session, undefined).catch(() => {})
    },
    async logOutAll(of, issuedAt) {
      const found = await use(known => known.find(of, issuedAt))
      const ended: EndedSession[] = []
      for (let from = 0; from < found.length; from += ENDED_AT_ONCE) {
        const ids = found.slice(from, from + ENDED_AT_ONCE)
        ended.push(...(await Promise.all(ids.map(async id => ({ id, record: await end(id) })))))
        await use(known => known.leave(of, ids)).catch(() => {})
      }
      return ended
    },
    claim: (tokenId, lifetimeMs) => use(known => known.claim(tokenId, lifetimeMs)),
    async keepClaim(tokenId, lifetimeMs) {
      await use(known => known.keepClaim(tokenId, lifetimeMs)).catch(() => {})
    },
    async release(tokenId) {
      await use(known => known.release(tokenId)).catch(() => {})
    }
  }
}
