/** Simulates thousands of browsers in random order. Each has its own session and uses the new cookie after a refresh. */
import http from 'node:http'
import { cookieFrom } from './candidates/common.js'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { another, createSessions } from './sessions.js'
import { signIn } from './sign-in.js'

const SIGN_INS_AT_ONCE = 20

/**
 * @typedef {object} Crowd
 * @property {string} origin
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string} secret
 * @property {import('./sessions.js').Session} session the template of all sessions
 * @property {number} sessions
 * @property {boolean} [signsIn] true if each browser signs in at the server, because a Redis must know the sessions
 * @property {number} connections
 */

/** @type {Crowd} */
let crowd
let sessions
let agent
/** The `Cookie` header of each browser. */
let cookies
let sent = 0
// A browser waits for its response. Otherwise two requests with one expired session would cause only one refresh, and
// refreshes could not be counted.
const waiting = new Set()

answerParent({
  /** @param {Crowd} given */
  async start(given) {
    crowd = given
    sessions = createSessions(crowd.secret)
    agent = new http.Agent({ keepAlive: true, maxSockets: crowd.connections })
    cookies = Array.from({ length: crowd.sessions }, () => sessions.cookie(another(crowd.session)))
    if (!crowd.signsIn) return
    for (let first = 0; first < cookies.length; first += SIGN_INS_AT_ONCE) {
      const part = cookies.slice(first, first + SIGN_INS_AT_ONCE)
      cookies.splice(first, part.length, ...(await Promise.all(part.map(() => signIn(crowd.origin, crowd.secret)))))
    }
  },
  /** @param {{ requests: number, expiredEvery: number }} run every n-th request has an expired session; with 0, none has */
  async run({ requests, expiredEvery }) {
    const statuses = {}
    let refreshes = 0
    let left = requests
    async function sendOneAfterAnother() {
      while (left-- > 0) {
        const browser = nextBrowser()
        waiting.add(browser)
        if (expiredEvery > 0 && ++sent % expiredEvery === 0) {
          cookies[browser] = sessions.expire(cookies[browser])
          refreshes++
        }
        const headers = { ...crowd.headers, cookie: cookies[browser] }
        const answer = await get({ url: crowd.origin + crowd.path, headers, agent })
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
        const setCookies = answer.headers['set-cookie']
        if (setCookies) cookies[browser] = cookieFrom(setCookies)
        waiting.delete(browser)
      }
    }
    await Promise.all(Array.from({ length: crowd.connections }, sendOneAfterAnother))
    return { statuses, refreshes }
  }
})

function nextBrowser() {
  for (;;) {
    const browser = Math.floor(Math.random() * cookies.length)
    if (!waiting.has(browser)) return browser
  }
}
