/** Shared code of the candidates: listening, the two responses, and provider calls with as little CPU time as possible. */
import http from 'node:http'
import { PUBLIC_SCOPES } from '../settings.js'

/** @typedef {import('../sessions.js').Session} Session */

/**
 * @typedef {object} Candidate
 * @property {number} port
 * @property {(session: Session) => string | Promise<string>} cookie returns the `Cookie` header of a browser with this session
 * @property {() => { cpuMicros: number, residentBytes: number }} [usage] measures the candidate if it is not this process
 * @property {() => Promise<unknown>} [end] ends the candidate if it does not end with this process
 */

export const TOKEN_PATH = '/api/auth/token'
/** A path that calls an API with the access token of the session. */
export const HUBS_PATH = '/api/hubs'
export const PROFILE_PATH = '/api/auth/profile'
export const LOGIN_PATH = '/api/auth/login'
export const CALLBACK_PATH = '/api/auth/callback'
/** The path of oauth2-proxy. The forward-auth port of this server answers every path. */
export const FORWARD_AUTH_PATH = '/oauth2/auth'

/**
 * @param {http.RequestListener} handler
 * @param {number} [port] a free port, unless one is given
 * @returns {Promise<number>}
 */
export function listen(handler, port = 0) {
  const server = http.createServer(handler)
  // The keep-alive time is a setting and not a cost, so it is the same for all candidates.
  server.keepAliveTimeout = 75_000
  return new Promise(resolve => server.listen(port, '127.0.0.1', () => resolve(server.address().port)))
}

/** @param {Pick<Session, 'public_token' | 'expires_at'>} session */
export function tokenObject({ public_token, expires_at }) {
  return { access_token: public_token, expires_in: Math.round((expires_at - Date.now()) / 1000) }
}

/**
 * Requests the address and returns the `Cookie` header that a browser would send afterwards.
 * @param {string} url
 */
export async function cookieSetBy(url) {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return cookieFrom(response.headers.getSetCookie())
}

/**
 * Returns the `Cookie` header of a browser that has received these `Set-Cookie` headers.
 * @param {string[]} setCookies
 */
export function cookieFrom(setCookies) {
  return setCookies.map(cookie => cookie.split(';', 1)[0]).join('; ')
}

/** @param {string} providerUrl */
export function createProviderCalls(providerUrl) {
  const agent = new http.Agent({ keepAlive: true })
  function call(path, options, body) {
    return new Promise((resolve, reject) => {
      const request = http.request(`${providerUrl}${path}`, { agent, ...options }, response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve(JSON.parse(text)))
      })
      request.on('error', reject).end(body)
    })
  }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  return {
    userInfo: () => call('/userinfo', { headers: { Authorization: 'Bearer bench' } }),
    tokens: () => call('/token', { method: 'POST', headers: form }, `grant_type=refresh_token&scope=${PUBLIC_SCOPES}`)
  }
}
