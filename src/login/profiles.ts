/**
 * Gets the display name of the user who signed in. Every page load asks for the name, but providers limit the number of user info
 * requests of an application, so the name is cached.
 */

import { createExpiringMap } from '../base/expiring-map.js'
import type { SessionRecord } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { isRefusedByUserInfo } from '../provider/provider-error.js'
import type { UserSessions } from '../sessions/index.js'
import type { Mode } from './mode.js'

interface ProfileDependencies {
  readonly mode: Pick<Mode, 'displayName'>
  readonly idp: Pick<IdentityProvider, 'endpoint' | 'userInfo'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The time for which a name is cached. With 0, every request asks the provider. */
  readonly cacheTtlSeconds: number
  /** Undefined unless `platform.backchannelLogout` is on. */
  readonly userSessions?: Pick<UserSessions, 'addNames'> | undefined
}

export type Profiles = ReturnType<typeof createProfiles>

// The cache takes at most 20 MB, even if every name has 1,000 characters.
const MAX_CACHED = 10_000

/** @example const name = await createProfiles(dependencies).displayName(record, accessToken) */
export function createProfiles({ mode, idp, now, cacheTtlSeconds, userSessions }: ProfileDependencies) {
  const cached = createExpiringMap<Promise<string>>(MAX_CACHED, now)

  async function ask(identity: SessionRecord['identity'], accessToken: string): Promise<string> {
    const userinfoEndpoint = await idp.endpoint('userinfoEndpoint')
    const fallback = identity?.name ?? identity?.sub
    if (userinfoEndpoint === undefined) return fallback ?? ''
    const userInfo = await idp.userInfo(accessToken, identity?.sub).catch((error: unknown) => {
      // Some user info endpoints accept no access token for another API (Entra). The name in the ID token is good enough then.
      if (identity?.name === undefined || !isRefusedByUserInfo(error)) throw error
      return {}
    })
    userSessions?.addNames(identity, userInfo)
    // `sub` is the last resort of each mode, and the name in the ID token comes before it (ADFS returns `sub` only).
    return mode.displayName(fallback === undefined ? userInfo : { ...userInfo, sub: fallback })
  }

  return {
    /**
     * Returns the display name of the user who signed in, at most 1,000 characters. It comes from the provider's user info
     * endpoint. If that has no name, refuses the access token or does not exist, the name comes from the ID token of the login, or
     * is its `sub`. Without an ID token, it is empty. Requests of one session within `cacheTtlSeconds` share one call to the provider.
     * Rejects with OAuthError or ProviderError. Errors are not cached.
     * @param accessToken the internal token of the session, which is the access token that stays on the server
     */
    displayName({ id, identity }: Pick<SessionRecord, 'id' | 'identity'>, accessToken: string): Promise<string> {
      const known = cached.get(id)
      if (known) return known
      const name = ask(identity, accessToken)
      cached.set(id, name, cacheTtlSeconds * 1000)
      name.catch(() => {
        if (cached.get(id) === name) cached.delete(id)
      })
      return name
    },
    /** Removes the name of a logged-out session from the cache. */
    forget(sessionId: string): void {
      cached.delete(sessionId)
    }
  }
}
