/** The load generators autocannon and wrk. They have their own process, so their CPU time does not count as the server's. */
import { spawn } from 'node:child_process'
import net from 'node:net'
import autocannon from 'autocannon'
import { answerParent } from './processes.js'
import { createSessions, expired } from './sessions.js'
import { runWrk } from './wrk.js'

/**
 * @typedef {object} Job
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {number} status the expected status; any other one is an error
 * @property {number} connections
 * @property {number} [seconds]
 * @property {number} [amount] number of requests, instead of a duration
 * @property {Fresh} [fresh]
 * @property {'autocannon' | 'wrk'} [tool]
 * @property {boolean} [neverSleeps] true if this process keeps its core busy while it waits for responses. autocannon only
 */

/**
 * For requests that must differ from each other:
 * - `many`: `count` sessions in turn
 * - `cookies`: the given `Cookie` headers in turn
 * - `expired`: a new session for each request, because a session is refreshed only once
 * - `callback`: a new login for each request, because a code is exchanged only once
 * @typedef {{ what: 'many' | 'cookies' | 'expired' | 'callback', count: number, secret: string, session: Session,
 *   cookies?: string[] }} Fresh
 * @typedef {import('./sessions.js').Session} Session
 */

answerParent({
  /** @param {Job} job */
  async run(job) {
    if (job.tool === 'wrk') return runWrk(job)
    const { url, headers, status, connections, seconds, amount, fresh, neverSleeps } = job
    const sleep = neverSleeps ? stayAwake() : () => {}
    const result = await autocannon({
      url,
      headers,
      connections,
      ...(amount ? { amount } : { duration: seconds }),
      ...(fresh && { requests: [{ setupRequest: freshRequests(fresh, new URL(url).pathname, headers) }] })
    })
    sleep()
    const statuses = Object.keys(result.statusCodeStats)
    if (result.errors > 0 || statuses.some(code => code !== String(status))) {
      throw new Error(`${url} answered ${statuses.join(', ')} instead of ${status}, with ${result.errors} errors`)
    }
    return { requests: result.requests.total, seconds: result.duration, p99: result.latency.p99 }
  },
  timeToListen,
  timeToExit
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

/** @param {Fresh} fresh */
function freshRequests({ what, count, secret, session, cookies: given }, path, headers) {
  const { cookie, callback } = createSessions(secret)
  const withCookie = (request, cookie) => ({ ...request, headers: { ...headers, cookie } })
  switch (what) {
    case 'many':
    case 'cookies': {
      const cookies = given ?? Array.from({ length: count }, () => cookie(session))
      let next = 0
      return request => withCookie(request, cookies[next++ % cookies.length])
    }
    case 'expired':
      return request => withCookie(request, cookie(expired(session)))
    case 'callback':
      return request => {
        const login = callback()
        return withCookie({ ...request, path: path + login.query }, login.cookie)
      }
  }
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

/** Returns the milliseconds from starting a process to its end. */
async function timeToExit({ command, args, env, cwd }) {
  const started = performance.now()
  const child = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: 'ignore' })
  const code = await new Promise(resolve => child.once('exit', resolve))
  if (code !== 0) throw new Error(`${args.join(' ')} ended with code ${code}`)
  return performance.now() - started
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
