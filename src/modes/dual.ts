import type { Config } from '../config/settings.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { TokenSet } from '../idp/token-set.js'
import { firstName, fullName } from './display-name.js'
import { abandon, expiresAt, type ModeParts, redeemCode, tokenObject } from './grants.js'
import type { Mode } from './mode.js'

type Scopes = Pick<Config['platform'], 'internalScopes' | 'publicScopes'>

/** A wide token that never leaves the server and a narrow one for the browser, from one login and one refresh token. */
export function createDualMode({ internalScopes, publicScopes }: Scopes, parts: ModeParts): Mode {
  const { idp, now } = parts
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  function narrow(refreshToken: string): Promise<TokenSet> {
    return idp.refreshTokenGrant({ refreshToken, scope: publicScope })
  }

  // Only after its refresh token has been noted: that is the newest, whatever else came with it.
  function refuseWiderScope({ scope }: TokenSet): void {
    if (scope?.every(name => publicScopes.includes(name)) ?? true) return
    throw new UpstreamError('token', 'unusable', 'it granted the public token more than the public scopes')
  }

  return {
    name: 'dual',
    loginScope: internalScope,
    offersPublicToken: true,
    async redeem(grant) {
      const internal = await redeemCode(parts, grant, internalScopes)
      const expires_at = expiresAt(internal, now())
      let refresh_token = internal.refreshToken
      try {
        const narrowed = await narrow(refresh_token)
        refresh_token = narrowed.refreshToken ?? refresh_token
        refuseWiderScope(narrowed)
        return {
          public_token: narrowed.accessToken,
          internal_token: internal.accessToken,
          refresh_token,
          expires_at
        }
      } catch (error) {
        abandon(idp, refresh_token)
        if (error instanceof OAuthError) {
          const { error: code, status } = error
          throw new UpstreamError('token', 'unusable', `it refused the public scopes (${code})`, { status })
        }
        throw error
      }
    },
    async refresh(fields, halfway = async () => {}) {
      let refresh_token = fields.refresh_token as string
      let internal: TokenSet
      try {
        internal = await idp.refreshTokenGrant({ refreshToken: refresh_token, scope: internalScope })
      } catch (error) {
        return { outcome: 'failed', calls: 1, error }
      }
      // From here on the old refresh token is spent: whatever comes next, the newest must survive.
      const expires_at = expiresAt(internal, now())
      const internal_token = internal.accessToken
      refresh_token = internal.refreshToken ?? refresh_token
      try {
        await halfway({ ...fields, internal_token, refresh_token })
        const narrowed = await narrow(refresh_token)
        refresh_token = narrowed.refreshToken ?? refresh_token
        refuseWiderScope(narrowed)
        const public_token = narrowed.accessToken
        return { outcome: 'complete', calls: 2, fields: { public_token, internal_token, refresh_token, expires_at } }
      } catch (error) {
        return { outcome: 'partial', calls: 2, error, fields: { ...fields, internal_token, refresh_token } }
      }
    },
    tokens(fields, now) {
      return {
        internal: tokenObject(fields.internal_token, fields.expires_at, now),
        public: tokenObject(fields.public_token, fields.expires_at, now)
      }
    },
    displayName(userInfo) {
      return firstName(fullName(userInfo), userInfo.name, userInfo.preferred_username, userInfo.userName)
    }
  }
}
