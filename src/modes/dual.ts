import type { Config } from '../config/settings.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { TokenSet } from '../idp/token-set.js'
import { firstName, fullName } from './display-name.js'
import { abandon, expiresAt, type ModeParts, redeemCode, repeatOnceIfBusy, tokenObject } from './grants.js'
import { LoginInterruptedError, type Mode } from './mode.js'

type Scopes = Pick<Config['platform'], 'internalScopes' | 'publicScopes'>

/**
 * Two access tokens from one login and one refresh token: the internal token stays on the server, the public token has
 * fewer scopes and is for the browser.
 */
export function createDualMode({ internalScopes, publicScopes }: Scopes, parts: ModeParts): Mode {
  const { idp, now, wait } = parts
  const internalScope = internalScopes.join(' ')
  const publicScope = publicScopes.join(' ')

  function narrow(refreshToken: string): Promise<TokenSet> {
    return idp.refreshTokenGrant({ refreshToken, scope: publicScope })
  }

  // Call this only after storing the response's refresh token: even a response that we reject may have rotated it.
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
        const narrowed = await repeatOnceIfBusy(() => narrow(internal.refreshToken), wait)
        refresh_token = narrowed.refreshToken ?? refresh_token
        refuseWiderScope(narrowed)
        return {
          public_token: narrowed.accessToken,
          internal_token: internal.accessToken,
          refresh_token,
          expires_at
        }
      } catch (error) {
        // A revocation would be one more call to a provider that asked for fewer.
        if (error instanceof UpstreamError && error.isBusy) throw new LoginInterruptedError(error)
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
      // The old refresh token is spent now. The newest one must be kept, whatever happens next.
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
