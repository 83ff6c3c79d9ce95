import type { Config } from '../config/settings.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { TokenSet } from '../idp/token-set.js'
import { firstName, fullName } from './display-name.js'
import { expiresAt, type ModeParts, redeemCode, tokenObject } from './grants.js'
import type { Mode } from './mode.js'

type Scopes = Pick<Config['platform'], 'internalScopes' | 'publicScopes'>

/** A wide token that never leaves the server and a narrow one for the browser, from one login and one refresh token. */
export function createDualMode({ internalScopes, publicScopes }: Scopes, parts: ModeParts): Mode {
  const { idp, now } = parts
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  async function narrow(refreshToken: string): Promise<TokenSet> {
    const tokenSet = await idp.refreshTokenGrant({ refreshToken, scope: publicScope })
    const wider = tokenSet.scope?.filter(name => !publicScopes.includes(name)) ?? []
    if (wider.length > 0) {
      throw new WiderScopeError(tokenSet.refreshToken ?? refreshToken, wider)
    }
    return tokenSet
  }

  return {
    name: 'dual',
    loginScope: internalScope,
    offersPublicToken: true,
    async redeem(grant) {
      const internal = await redeemCode(parts, grant, internalScopes)
      const expires_at = expiresAt(internal, now())
      try {
        const narrowed = await narrow(internal.refreshToken)
        return {
          public_token: narrowed.accessToken,
          internal_token: internal.accessToken,
          refresh_token: narrowed.refreshToken ?? internal.refreshToken,
          expires_at
        }
      } catch (error) {
        // Nobody will ever use this login; what it was given must not lie about. It may fail as the rest just did.
        const left = error instanceof WiderScopeError ? error.refreshToken : internal.refreshToken
        idp.revokeRefreshToken(left).catch(() => {})
        if (error instanceof OAuthError) {
          throw new UpstreamError('token', 'unusable', `it refused the public scopes (${error.error})`)
        }
        throw error
      }
    },
    async refresh(fields) {
      const refreshToken = fields.refresh_token as string
      let kept = fields
      let calls = 1
      try {
        const internal = await idp.refreshTokenGrant({ refreshToken, scope: internalScope })
        const expires_at = expiresAt(internal, now())
        // From here on the old refresh token is spent: whatever comes next, the new one must survive.
        const rotated = internal.refreshToken ?? refreshToken
        kept = { ...fields, internal_token: internal.accessToken, refresh_token: rotated }
        calls = 2
        const narrowed = await narrow(rotated)
        return {
          outcome: 'complete',
          calls,
          fields: {
            public_token: narrowed.accessToken,
            internal_token: internal.accessToken,
            refresh_token: narrowed.refreshToken ?? rotated,
            expires_at
          }
        }
      } catch (error) {
        if (calls === 1) return { outcome: 'failed', calls, error }
        if (error instanceof WiderScopeError) kept = { ...kept, refresh_token: error.refreshToken }
        return { outcome: 'partial', calls, error, fields: kept }
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

/** The provider gave the browser's token more than the public scopes; its refresh token is still the newest. */
class WiderScopeError extends UpstreamError {
  readonly refreshToken: string

  constructor(refreshToken: string, wider: readonly string[]) {
    super('token', 'unusable', `it granted the public token more than was asked for: ${wider.join(' ')}`)
    this.refreshToken = refreshToken
  }
}
