/**
 * The provider's record of all logins. A refresh token can be used once. If it is used again, the provider assumes that it was
 * stolen and revokes all tokens of the login (RFC 9700 section 4.14.2).
 */
import { randomBytes } from 'node:crypto'

/**
 * @typedef {object} Login
 * @property {string} person
 * @property {boolean} isRevoked
 * @property {string} scope
 *
 * @typedef {{ login: Login, timesUsed: number }} RefreshToken
 */

/**
 * @param {{ lifetimeMs: number, leewayMs: number, now: () => number }} options `leewayMs` is the time for which an API still
 *   accepts an access token that has expired
 */
export function createLogins({ lifetimeMs, leewayMs, now }) {
  /** @type {Login[]} */
  const logins = []
  /** @type {Map<string, RefreshToken>} */
  const refreshTokens = new Map()
  /** @type {Map<string, { login: Login, expiresAt: number }>} */
  const accessTokens = new Map()
  const counts = { refreshes: 0, refused: 0, sentTwice: 0, revoked: 0 }

  /**
   * @param {Login} login
   * @param {number} delayMs the time until the response with the tokens is sent
   */
  function issue(login, delayMs) {
    const accessToken = randomText()
    const refreshToken = randomText()
    refreshTokens.set(refreshToken, { login, timesUsed: 0 })
    accessTokens.set(accessToken, { login, expiresAt: now() + delayMs + lifetimeMs })
    return { accessToken, refreshToken, login }
  }

  return {
    counts,
    /**
     * @param {string} person
     * @param {string} scope
     * @param {number} [delayMs]
     */
    begin(person, scope, delayMs = 0) {
      const login = { person, scope, isRevoked: false }
      logins.push(login)
      return issue(login, delayMs)
    },
    /**
     * @param {string} token
     * @param {number} [delayMs]
     * @returns {ReturnType<typeof issue> | undefined} undefined if the answer is `invalid_grant`
     */
    refresh(token, delayMs = 0) {
      const found = refreshTokens.get(token)
      if (found === undefined || found.login.isRevoked || found.timesUsed > 0) {
        counts.refused++
        if (found !== undefined) noteReuse(found)
        return undefined
      }
      found.timesUsed = 1
      counts.refreshes++
      return issue(found.login, delayMs)
    },
    /** @param {string} token */
    isAccepted(token) {
      const found = accessTokens.get(token)
      return found !== undefined && !found.login.isRevoked && now() < found.expiresAt + leewayMs
    },
    /** The people whose login the provider has ended. */
    revokedPeople: () => logins.filter(({ isRevoked }) => isRevoked).map(({ person }) => person),
    /** @param {string} token an access token */
    personOf: token => accessTokens.get(token)?.login.person
  }

  /** @param {RefreshToken} token */
  function noteReuse(token) {
    if (token.timesUsed === 0) return
    token.timesUsed++
    if (token.timesUsed === 2) counts.sentTwice++
    if (token.login.isRevoked) return
    token.login.isRevoked = true
    counts.revoked++
  }
}

function randomText() {
  return randomBytes(24).toString('base64url')
}
