/**
 * The display names of sessions. A name can be kept for a while, since providers limit user info calls for the whole
 * application and every page load asks for a name.
 */
import { createExpiringMap } from '../coordination/expiring-map.js'
import type { IdentityProvider } from '../idp/client.js'
import { UpstreamError } from '../idp/errors.js'
import type { Mode } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'

export interface ProfileParts {
  readonly mode: Pick<Mode, 'displayName'>
  readonly idp: Pick<IdentityProvider, 'metadata' | 'userInfo'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** 0 asks the provider at every request. */
  readonly keepSeconds: number
}

export interface Profiles {
  /**
   * The display name of whoever this session belongs to, at most 1,000 characters. It comes from user info, or from the
   * ID token of the login if the provider has no user info endpoint. Requests of one session that come
   * within `keepSeconds` share one call to the provider. Rejects with OAuthError or UpstreamError; errors are not kept.
   * @param accessToken the internal token of the session
   */
  displayName(session: Pick<SessionRecord, 'id' | 'identity'>, accessToken: string): Promise<string>
  /** Forgets the name of a session, which has been logged out. */
  forget(sessionId: string): void
}

// At 1,000 characters each, names take 20 MB at the most.
const MOST_KEPT = 10_000

export function createProfiles({ mode, idp, now, keepSeconds }: ProfileParts): Profiles {
  const kept = createExpiringMap<Promise<string>>(MOST_KEPT, now)

  async function ask(identity: SessionRecord['identity'], accessToken: string): Promise<string> {
    const { userinfoEndpoint } = await idp.metadata()
    if (userinfoEndpoint === undefined) return identity?.name ?? ''
    const userInfo = await idp.userInfo(accessToken)
    // OpenID Connect Core section 5.3.2: claims about another subject must not be used.
    if (identity && userInfo.sub !== identity.sub) {
      throw new UpstreamError('userinfo', 'unusable', 'its sub is not that of the login')
    }
    return mode.displayName(userInfo)
  }

  return {
    displayName({ id: sessionId, identity }, accessToken) {
      const known = kept.get(sessionId)
      if (known) return known
      const name = ask(identity, accessToken)
      kept.set(sessionId, name, keepSeconds * 1000)
      name.catch(() => {
        if (kept.get(sessionId) === name) kept.delete(sessionId)
      })
      return name
    },
    forget(sessionId) {
      kept.delete(sessionId)
    }
  }
}
