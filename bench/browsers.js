/** Simulates thousands of browsers in random order. Each has its own session and uses the new cookie after a refresh. */
import http from 'node:http'
import { cookieFrom } from './candidates/common.js'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { another, createSessions } from './sessions.js'

/**
 * @typedef {object} Crowd
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {string} secret
 * @property {import('./sessions.js').Session} session the template of all sessions
 * @property {number} sessions
 * @property {number} connections
 * @property {number} expiredEvery every n-th request has an expired session
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
  start(given) {
    crowd = given
    sessions = createSessions(crowd.secret)
    agent = new http.Agent({ keepAlive: true, maxSockets: crowd.connections })
    cookies = Array.from({ length: crowd.sessions }, () => sessions.cookie(another(crowd.session)))
  },
  async run(requests) {
    const statuses = {}
    let refreshes = 0
    let left = requests
    async function sendOneAfterAnother() {
      while (left-- > 0) {
        const browser = nextBrowser()
        waiting.add(browser)
        if (++sent % crowd.expiredEvery === 0) {
          cookies[browser] = sessions.expire(cookies[browser])
          refreshes++
        }
        const headers = { ...crowd.headers, cookie: cookies[browser] }
        const answer = await get({ url: crowd.url, headers, agent })
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
