/** A simulated user with one browser, whose pages send several requests. */
import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { HEADERS } from '../get.js'
import { between } from './random.js'
import { kindOf, REPEATED } from './verdict.js'

/**
 * The requests of a page:
 * - `parallel`: six requests in parallel
 * - `document-first`: the document as a navigation, and then six requests in parallel, as a framework loads a page
 * @typedef {'parallel' | 'document-first'} PageKind
 */
export const PAGES = /** @type {const} */ (['parallel', 'document-first'])
const REQUESTS_PER_PAGE = 6
const SHORTEST_THOUGHT_MS = 1000
const LONGEST_THOUGHT_MS = 2000
const LONGEST_WAIT_MS = 30_000
const LONGEST_UNTIL_CUT_MS = 400
const MAX_REDIRECTS = 12
/** The reason of an aborted request whose connection the browser has cut. */
const CUT = 'cut'

// The headers that a browser sends for fetch() in a page, and for opening a page. Programs answer fetch() with 401 and not with a
// redirect to the login (Fetch Metadata Request Headers, https://www.w3.org/TR/fetch-metadata/).
const FETCH = { ...HEADERS, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
const NAVIGATION = {
  ...HEADERS,
  accept: 'text/html',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-user': '?1'
}

// A browser reuses connections. Six connections to each process are enough for the requests of a page.
const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 4096 })

/**
 * What all users of a case share.
 * @typedef {object} Surroundings
 * @property {string} origin the public address of the program
 * @property {string} path the path that every request asks for
 * @property {PageKind} [pages]
 * @property {boolean} [isSticky] every user stays at one process while it listens
 * @property {() => number[]} ports the ports of the processes
 * @property {{ cutShare: number }} weather the share of pages whose connections are cut
 * @property {(id: string) => boolean} isRevoked returns true if the provider has ended the login of this user
 */

/**
 * @param {string} id
 * @param {() => number} random
 * @param {import('tough-cookie').CookieJar} jar
 * @param {Surroundings} surroundings
 */
export function createUser(id, random, jar, surroundings) {
  const { origin, loginPath, path, pages, isSticky, ports, tally, weather, isRevoked } = surroundings
  const home = random()
  let lostPages = 0
  // The time since which this user was not served, although requests were complete.
  let unservedSince

  /** Sends a request to one of the processes. If nothing listens on its port, another process gets it, as a proxy would do. */
  async function askProgram(url, options) {
    const all = ports()
    const first = Math.floor((isSticky ? home : random()) * all.length)
    for (let tries = 0; ; tries++) {
      try {
        return await ask(url, { ...options, port: all[(first + tries) % all.length] })
      } catch (error) {
        if (error.code !== 'ECONNREFUSED' || tries + 1 >= all.length) throw error
      }
    }
  }

  function ask(url, { port, headers: given, signal }) {
    const cookie = jar.getCookieStringSync(url)
    const { host, pathname, search } = new URL(url)
    const headers = { ...given, host, ...(cookie && { cookie }) }
    return send({ port, path: pathname + search, headers, signal }, response => {
      // A browser stores cookies when the headers arrive. It does not wait for the body.
      for (const setCookie of response.headers['set-cookie'] ?? []) {
        jar.setCookieSync(setCookie, url, { ignoreError: true })
      }
    })
  }

  function askProvider(url) {
    const { port, host, pathname, search } = new URL(url)
    return send({ port, path: pathname + search, headers: { ...NAVIGATION, host, 'x-user': id } })
  }

  async function load(signal) {
    tally.requests++
    const began = performance.now()
    const { status } = await askProgram(origin + path, { headers: FETCH, signal }).catch(noAnswer)
    if (signal.aborted && status === undefined && signal.reason === CUT) return undefined
    const kind = kindOf(status)
    noteWait(kind, began)
    return kind
  }

  /** Measures how long this user gets no data although the browser cuts nothing. */
  function noteWait(kind, began) {
    if (kind !== 'served') unservedSince ??= began
    if (unservedSince === undefined) return
    tally.waits.set(id, Math.max(tally.waits.get(id) ?? 0, performance.now() - unservedSince))
    if (kind === 'served') unservedSince = undefined
  }

  /** A navigation has no result here: programs respond to it with the document, or with a redirect to the login. */
  async function loadDocument(signal) {
    await askProgram(`${origin}/`, { headers: NAVIGATION, signal }).catch(noAnswer)
  }

  /** Returns the kinds of the responses to the requests of a page. */
  async function loadParts(signal) {
    if (pages === 'document-first') await loadDocument(signal)
    return Promise.all(Array.from({ length: REQUESTS_PER_PAGE }, () => load(signal)))
  }

  async function loadPage() {
    const isCut = random() < weather.cutShare
    const cutMs = between(random, 0, LONGEST_UNTIL_CUT_MS)
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(isCut ? CUT : 'too slow'), isCut ? cutMs : LONGEST_WAIT_MS)
    const kinds = await loadParts(controller.signal)
    clearTimeout(timer)
    if (isCut) return
    const isLost = kinds.every(kind => kind === 'refused') || (isRevoked(id) && !kinds.includes('served'))
    lostPages = isLost ? lostPages + 1 : 0
  }

  return {
    id,
    cookieBytes: () => jar.getCookieStringSync(origin + path).length,
    hasCookies: () => jar.getCookieStringSync(origin + path) !== '',
    /** Follows all redirects to the provider and back. */
    async signIn() {
      let url = origin + loginPath
      for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
        const answer = url.startsWith(`${origin}/`)
          ? await askProgram(url, { headers: NAVIGATION })
          : await askProvider(url)
        const { location } = answer.headers
        if (location === undefined) {
          if (answer.status >= 400)
            throw new Error(`the login ended with ${answer.status}: ${answer.body.slice(0, 300)}`)
          return
        }
        const next = new URL(location, url).href
        // The callback has redirected back to the site, so the login is complete.
        if (redirects > 1 && next.startsWith(`${origin}/`) && new URL(next).search === '') return
        url = next
      }
      throw new Error(`the login redirected more than ${MAX_REDIRECTS} times`)
    },
    /** Loads pages until the time has passed, or until this user gives up after several pages without a login. */
    async live(hasEnded) {
      while (!hasEnded() && lostPages < REPEATED) {
        await pause(between(random, SHORTEST_THOUGHT_MS, LONGEST_THOUGHT_MS))
        if (!hasEnded()) await loadPage()
      }
    },
    /** Sends one request. */
    look: () => load(AbortSignal.timeout(LONGEST_WAIT_MS))
  }
}

/** What all users of a case count. `waits` has the longest time without data of each user who got a response without it. */
export function createTally() {
  return { requests: 0, waits: new Map() }
}

/** @param {NodeJS.ErrnoException} error */
function noAnswer(error) {
  return { status: undefined, body: error.message }
}

/** Sends a GET request. As in a browser, it is repeated if the server has just closed the connection that was reused. */
async function send(options, onHeaders = () => {}) {
  for (;;) {
    try {
      return await sendOnce(options, onHeaders)
    } catch (error) {
      if (!error.isRepeatable) throw error
    }
  }
}

function sendOnce({ port, path, headers, signal }, onHeaders) {
  return new Promise((resolve, reject) => {
    let hasAnswered = false
    const request = http.get({ host: '127.0.0.1', port, path, headers, agent, signal }, response => {
      hasAnswered = true
      onHeaders(response)
      const chunks = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() })
      )
    })
    request.on('error', error => {
      error.isRepeatable = request.reusedSocket && error.code === 'ECONNRESET' && !hasAnswered
      reject(error)
    })
  })
}
