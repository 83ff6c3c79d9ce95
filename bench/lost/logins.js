/** The provider's record of all logins. A refresh token can be used once. */
import { randomBytes } from 'node:crypto'

/** The time for which a provider of the kind `allows` accepts a second use. */
const GRACE_MS = 30_000
/** 750 bytes are 1,000 characters, as in a JWT of a real provider. */
const ACCESS_TOKEN_BYTES = 750
const REFRESH_TOKEN_BYTES = 24

/**
 * What the provider does at a second use of a refresh token:
 * - `ends-login`: it assumes that the token was stolen and revokes all tokens of the login (RFC 9700 section 4.14.2)
 * - `refuses`: it refuses this request, and the login continues with the newest tokens
 * - `allows`: it issues tokens again for 30 s, and ends the login at a later use
 * @typedef {'ends-login' | 'refuses' | 'allows'} Reuse
 */
export const REUSES = /** @type {const} */ (['ends-login', 'refuses', 'allows'])

/**
 * @param {{ lifetimeMs: number, leewayMs: number, now: () => number, reuse?: Reuse }} options `leewayMs` is the time for
 *   which an API still accepts an access token that has expired
 */
export function createLogins({ lifetimeMs, leewayMs, now, reuse = 'ends-login' }) {
  const logins = []
  const refreshTokens = new Map()
  const accessTokens = new Map()

  /** @param {number} delayMs the time until the response with the tokens is sent */
  function issue(login, delayMs) {
    const accessToken = randomText(ACCESS_TOKEN_BYTES)
    const refreshToken = randomText(REFRESH_TOKEN_BYTES)
    refreshTokens.set(refreshToken, { login })
    accessTokens.set(accessToken, { login, expiresAt: now() + delayMs + lifetimeMs })
    return { accessToken, refreshToken, login }
  }

  return {
    begin(user, scope, delayMs = 0) {
      const login = { user, scope, isRevoked: false }
      logins.push(login)
      return issue(login, delayMs)
    },
    /** Returns undefined if the answer is `invalid_grant`. */
    refresh(token, delayMs = 0) {
      const found = refreshTokens.get(token)
      if (found === undefined) return undefined
      const wasUsed = found.firstUsedAt !== undefined
      if (wasUsed && reuse !== 'refuses' && !isInGrace(found)) found.login.isRevoked = true
      if (found.login.isRevoked || (wasUsed && !isInGrace(found))) return undefined
      found.firstUsedAt ??= now()
      return issue(found.login, delayMs)
    },
    isAccepted(token) {
      const found = accessTokens.get(token)
      return found !== undefined && !found.login.isRevoked && now() < found.expiresAt + leewayMs
    },
    /** The users whose login the provider has ended. */
    revokedUsers: () => logins.filter(({ isRevoked }) => isRevoked).map(({ user }) => user),
    userOf: token => accessTokens.get(token)?.login.user
  }

  function isInGrace({ firstUsedAt }) {
    return reuse === 'allows' && now() - firstUsedAt < GRACE_MS
  }
}

function randomText(bytes) {
  return randomBytes(bytes).toString('base64url')
}
