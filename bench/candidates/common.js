/** Shared code of the candidates. */
import http from 'node:http'

/**
 * @typedef {import('../sessions.js').Session} Session
 *
 * @typedef {object} Bench the parameters of a candidate
 * @property {string} secret generated for each run
 * @property {string} providerUrl the stand-in identity provider
 * @property {string} wwwroot a folder with one file
 * @property {Session} session candidates without sessions return the tokens of this session
 * @property {string} [apiUrl] an API that needs an access token
 * @property {number} [port] a free port, unless one is given
 * @property {Record<string, unknown>} [settings] further settings of this server
 *
 * @typedef {object} Candidate
 * @property {number} port
 * @property {(session: Session) => string | Promise<string>} cookie returns the `Cookie` header of a browser with this session
 * @property {() => { cpuMicros: number, residentBytes: number }} [usage] measures the candidate if it is not this process
 * @property {() => Promise<unknown>} [end] ends the candidate if it does not end with this process
 *
 * @typedef {(bench: Bench) => Promise<Candidate>} Start
 */

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
