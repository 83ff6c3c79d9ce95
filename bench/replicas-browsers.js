/** Simulates browsers that send requests to several servers at a constant rate, whether or not the servers keep up. */
import http from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { cookieFrom, TOKEN_PATH } from './candidates/common.js'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { createSessions } from './sessions.js'
import { signIn } from './sign-in.js'

/**
 * @typedef {object} Visits
 * @property {string[]} urls
 * @property {Record<string, string>} headers
 * @property {string} secret
 *
 * @typedef {object} Job
 * @property {'request' | 'refresh' | 'logout'} what
 * @property {number} rate visits a second
 * @property {number} seconds
 */

const LOGOUT_PATH = '/api/auth/logout'
const LOGINS_AT_ONCE = 16
const VISITS_AT_ONCE = 32
const BETWEEN_STARTS_MS = 5
// More browsers than these wait for the servers. The rate is then lower than requested.
const MOST_AT_ONCE = 400

/** @type {Visits} */
let visits
let sessions
let agent
/** The `Cookie` header of each browser that is not waiting for a response. */
let idle = []

answerParent({
  /** @param {Visits} given */
  start(given) {
    visits = given
    sessions = createSessions(given.secret)
    agent = new http.Agent({ keepAlive: true })
  },
  /** Signs new browsers in. */
  async signIn(count) {
    let left = count
    const signInOneAfterAnother = async () => {
      while (left-- > 0) idle.push(await signIn(anyUrl(), visits.secret, agent))
    }
    await Promise.all(Array.from({ length: LOGINS_AT_ONCE }, signInOneAfterAnother))
  },
  /** Lets each browser send one request. */
  async visitOnce() {
    const browsers = idle
    idle = []
    while (browsers.length > 0) idle.push(...(await Promise.all(browsers.splice(0, VISITS_AT_ONCE).map(visit.request))))
  },
  /** @param {Job} job */
  async run({ what, rate, seconds }) {
    const started = performance.now()
    const durations = []
    const running = new Set()
    let begun = 0
    let failure
    for (let elapsed = 0; elapsed < seconds && !failure; elapsed = (performance.now() - started) / 1000) {
      const due = Math.min(Math.floor(elapsed * rate) - begun, MOST_AT_ONCE - running.size, idle.length)
      for (let index = 0; index < due; index++) {
        begun++
        const one = timed(() => visit[what](idle.shift()))
          .then(({ next, took }) => {
            durations.push(took)
            if (next) idle.push(next)
          })
          .catch(error => {
            failure ??= error
          })
          .finally(() => running.delete(one))
        running.add(one)
      }
      await setTimeout(BETWEEN_STARTS_MS)
    }
    await Promise.all(running)
    if (failure) throw failure
    const took = (performance.now() - started) / 1000
    durations.sort((a, b) => a - b)
    const at = share => durations[Math.floor(share * (durations.length - 1))]
    return { count: durations.length, rate: durations.length / took, p50: at(0.5), p99: at(0.99) }
  },
  /** Closes all browsers. */
  forget() {
    idle = []
  }
})

async function timed(action) {
  const started = performance.now()
  return { next: await action(), took: performance.now() - started }
}

/** Each visit gets the cookie of a browser, and returns its next cookie. */
const visit = {
  request: cookie => sendTo(TOKEN_PATH, cookie, 200),
  /** Refreshes the session, and then sends the new cookie to another server, as the next request of a page does. */
  async refresh(cookie) {
    const refreshed = await sendTo(TOKEN_PATH, sessions.expire(cookie), 200)
    if (refreshed === cookie) throw new Error('A refresh has set no cookie.')
    return sendTo(TOKEN_PATH, refreshed, 200)
  },
  async logout(cookie) {
    await sendTo(LOGOUT_PATH, cookie, 302)
    return undefined
  }
}

function anyUrl() {
  return visits.urls[Math.floor(Math.random() * visits.urls.length)]
}

/** Returns the cookie that the browser has after the response. */
async function sendTo(path, cookie, status) {
  const headers = { ...visits.headers, cookie }
  const answer = await get({ url: anyUrl() + path, headers, agent })
  if (answer.status !== status) throw new Error(`${path} answered ${answer.status} ${answer.body.slice(0, 200)}`)
  const setCookies = answer.headers['set-cookie']
  return setCookies ? cookieFrom(setCookies) : cookie
}
