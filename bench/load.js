/** The load generator. It has its own process, so its CPU time does not count as the server's. */
import { spawn } from 'node:child_process'
import http from 'node:http'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import autocannon from 'autocannon'
import { cookieFrom } from './candidates/common.js'
import { get } from './get.js'
import { answerParent } from './processes.js'
import { createSessions } from './sessions.js'

/**
 * @typedef {object} Job
 * @property {number} status the expected status; any other one is an error
 * @property {number} [seconds]
 * @property {number} [amount] number of requests, instead of a duration
 * @property {{ count: number, secret: string, session: import('./sessions.js').Session }} [many] as many sessions in turn
 * @property {boolean} [neverSleeps] true if this process keeps its core busy while it waits for responses
 */

answerParent({
  /** @param {Job} job */
  async run({ url, headers, status, connections, seconds, amount, many, neverSleeps }) {
    const sleep = neverSleeps ? stayAwake() : () => {}
    const result = await autocannon({
      url,
      headers,
      connections,
      ...(amount ? { amount } : { duration: seconds }),
      ...(many && { requests: [{ setupRequest: inTurn(many, headers) }] })
    })
    sleep()
    const statuses = Object.keys(result.statusCodeStats)
    if (result.errors > 0 || statuses.some(code => code !== String(status))) {
      throw new Error(`${url} answered ${statuses.join(', ')} instead of ${status}, with ${result.errors} errors`)
    }
    return { requests: result.requests.total, seconds: result.duration, p99: result.latency.p99 }
  },
  refreshEach,
  download,
  pages,
  timeToListen
})

/**
 * Keeps the event loop of this process turning until the returned function is called. Otherwise each response of a server that
 * is slower than this process would have to wake it. Waking it costs the server up to 15 us, and a faster server does not pay
 * this.
 */
function stayAwake() {
  let isAwake = true
  const turn = () => isAwake && setImmediate(turn)
  turn()
  return () => {
    isAwake = false
  }
}

function inTurn({ count, secret, session }, headers) {
  const { cookie } = createSessions(secret)
  const cookies = Array.from({ length: count }, () => cookie(session))
  let next = 0
  return request => ({ ...request, headers: { ...headers, cookie: cookies[next++ % count] } })
}

/**
 * Sends requests of browsers whose tokens have expired. Each browser waits for its response, and then has the new cookie.
 * @param {{ url: string, headers: Record<string, string>, cookies: string[], secret: string, connections: number,
 *   amount: number }} job
 * @returns the cookies of the browsers
 */
async function refreshEach({ url, headers, cookies, secret, connections, amount }) {
  const { expire } = createSessions(secret)
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections })
  const browsers = [...cookies]
  let left = amount
  async function sendOneAfterAnother() {
    while (left-- > 0) {
      const cookie = browsers.shift()
      const answer = await get({ url, headers: { ...headers, cookie: expire(cookie) }, agent })
      if (answer.status !== 200) throw new Error(`${url} answered ${answer.status} ${answer.body.slice(0, 200)}`)
      const setCookies = answer.headers['set-cookie']
      browsers.push(setCookies ? cookieFrom(setCookies) : cookie)
    }
  }
  await Promise.all(Array.from({ length: connections }, sendOneAfterAnother))
  agent.destroy()
  return browsers
}

/** Downloads a response and discards it. Returns the seconds. */
function download({ url, headers, bytes }) {
  const started = performance.now()
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent: false }, response => {
      let received = 0
      response.on('data', chunk => {
        received += chunk.length
      })
      response.on('close', () => {
        if (received === bytes) resolve((performance.now() - started) / 1000)
        else reject(new Error(`${url} answered ${response.statusCode} with ${received} bytes`))
      })
    })
    request.on('error', reject)
  })
}

/**
 * Opens a page for each session, all within a second, as browsers do: with six connections each. Returns the seconds, and the share
 * of requests that got 503, because the queue of the API was full.
 */
async function pages({ url, headers, many: { count, secret, session }, paths }) {
  const { cookie } = createSessions(secret)
  const cookies = Array.from({ length: count }, () => cookie(session))
  const started = performance.now()
  let refused = 0
  await Promise.all(
    cookies.map(async (cookie, index) => {
      await pause((index * 1000) / count)
      const agent = new http.Agent({ keepAlive: true, maxSockets: 6 })
      const answers = paths.map(path => get({ url: new URL(path, url).href, headers: { ...headers, cookie }, agent }))
      const others = (await Promise.all(answers)).filter(({ status }) => status !== 200)
      const failed = others.find(({ status }) => status !== 503)
      refused += others.length
      agent.destroy()
      if (failed) throw new Error(`a request of a page got ${failed.status} ${failed.body.slice(0, 200)}`)
    })
  )
  return { seconds: (performance.now() - started) / 1000, refused: refused / (count * paths.length) }
}

/** Returns the milliseconds from starting a process to its first accepted connection, and to its first response to `path`. */
async function timeToListen({ command, args, env, cwd, port, path }) {
  const started = performance.now()
  const child = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', data => {
    complaint += data
  })
  const ended = new Promise(resolve => child.once('close', resolve))
  try {
    while (!(await connects(port))) {
      if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${complaint}`)
    }
    const listening = performance.now() - started
    await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    return { listening, answered: performance.now() - started }
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

function connects(port) {
  return new Promise(resolve => {
    const socket = net.connect(port, '127.0.0.1')
    const settle = value => {
      socket.destroy()
      setTimeout(resolve, value ? 0 : 1, value)
    }
    socket.once('connect', () => settle(true)).once('error', () => settle(false))
  })
}
