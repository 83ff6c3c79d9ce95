/** Creates sessions and logins without a real login. The server's own code encrypts them with the secret of the run. */
import { randomBytes } from 'node:crypto'
import { createKeyring } from '../dist/cookie/keyring.js'
import { createSessionCookie } from '../dist/cookie/session-cookie.js'
import { createLoginTransactions, newBrowserId } from '../dist/login/transaction.js'
import { cookieFrom } from './candidates/common.js'
import { get, HEADERS } from './get.js'
import { CALLBACK_PATH } from './settings.js'

/**
 * The fields of a session in dual mode.
 * @typedef {{ public_token: string, internal_token: string, refresh_token: string, expires_at: number }} Session
 */

const SESSION_COOKIE = 'platform_session'
const LOGIN_COOKIE = 'platform_session_login'
const DAY_SECONDS = 86_400
const HOUR_MS = 3_600_000

/**
 * @param {number} bytes size of the session as JSON. The length of the two tokens is chosen accordingly
 * @param {number} expiresAt milliseconds since the epoch
 * @returns {Session}
 */
export function createSession(bytes, expiresAt = Date.now() + HOUR_MS) {
  const empty = { public_token: '', internal_token: '', refresh_token: randomText(42), expires_at: expiresAt }
  const each = Math.floor((bytes - JSON.stringify(empty).length) / 2)
  return { ...empty, public_token: randomToken(each), internal_token: randomToken(each) }
}

/** @param {string} secret */
export function createSessions(secret) {
  const keyring = createKeyring([secret])
  const sessionCookie = createSessionCookie({
    sealer: keyring.sealer('session cookie, dual mode'),
    name: SESSION_COOKIE,
    inactivityTimeoutSeconds: DAY_SECONDS,
    maxLifetimeSeconds: undefined,
    now: Date.now
  })
  const transactions = createLoginTransactions(keyring.sealer('login state'), Date.now)
  const loginCookie = newBrowserId()
  const cookieOf = record =>
    sessionCookie
      .seal(record)
      .map((chunk, index) => `${sessionCookie.names[index]}=${chunk}`)
      .join('; ')
  return {
    /**
     * Returns the `Cookie` header of a browser with this session.
     * @param {Session} fields
     */
    cookie: fields => cookieOf({ id: randomText(22), rev: 1, loggedInAt: Date.now(), issuedAt: Date.now(), fields }),
    /**
     * Returns the header of the same browser after an hour. The tokens have expired, and the refresh token is unchanged.
     * @param {string} cookie
     */
    expire(cookie) {
      const { fields, ...login } = sessionCookie.open(cookie)
      return cookieOf({ ...login, fields: { ...fields, expires_at: Date.now() - 1000 } })
    },
    /** Returns the callback request of a browser that comes back from the provider. */
    callback() {
      const { state } = transactions.begin(loginCookie, '/')
      return { query: `?code=${randomText(32)}&state=${state}`, cookie: `${LOGIN_COOKIE}=${loginCookie}` }
    }
  }
}

/**
 * Completes a login at this server.
 * @param {string} url
 * @param {string} secret
 * @returns the `Cookie` header of the browser without the login cookie
 */
export async function signIn(url, secret) {
  const { query, cookie } = createSessions(secret).callback()
  const { status, headers, body } = await get({ url: url + CALLBACK_PATH + query, headers: { ...HEADERS, cookie } })
  if (status !== 302) throw new Error(`The callback responded with ${status} ${body.slice(0, 200)}`)
  return cookieFrom(headers['set-cookie'].filter(line => !line.includes(LOGIN_COOKIE)))
}

/** Returns text in the form of a JWT that compresses as badly as a real one. Its length is about the given one. */
export function randomToken(length) {
  const claims = { iss: 'bench', jti: randomText(Math.max(0, Math.floor((length - 430) * 0.75))) }
  const [header, payload] = [{ alg: 'RS256', typ: 'JWT' }, claims].map(part =>
    Buffer.from(JSON.stringify(part)).toString('base64url')
  )
  return `${header}.${payload}.${randomText(342)}`
}

function randomText(length) {
  return randomBytes(length).toString('base64url').slice(0, length)
}
