/**
 * A browser without pages, for tests. It keeps cookies, follows redirects, and sends the headers that a real browser
 * sends. Node's `fetch` cannot replace it, because it has no cookies and always sends `Sec-Fetch-Mode: cors`, which the
 * login rejects.
 */
import { Readable } from 'node:stream'
import { Agent, type Dispatcher, request } from 'undici'

export interface TestBrowser {
  /**
   * Sends a request as a script in a page of the application would with `fetch`. `signal`, `redirect` and `credentials` have the
   * same effect as in a page, with one exception: if `redirect` is `manual`, the status and the headers of the redirect response
   * can be read.
   * @param url a path, or a complete URL
   */
  fetch(url: string, init?: RequestInit): Promise<Response>
  /**
   * Opens a page. A GET request is sent as by the address bar, and a POST request as by a form in a page of the same origin.
   * Follows redirects, like `fetch`.
   */
  open(url: string, init?: RequestInit): Promise<Response>
  /**
   * Returns the value of the `Cookie` header with which another HTTP client can send requests to a path of the
   * application.
   */
  cookieHeader(path?: string): string
}

const MAX_REDIRECTS = 20
const PAGE_TYPES = 'text/html,application/xhtml+xml,*/*;q=0.8'

/** @param origin the origin of the application */
export function createTestBrowser(origin: string): TestBrowser {
  const cookies = createCookies()
  // Each request has a new connection, because idle connections would delay the end of the server and the test.
  const dispatcher = new Agent({ pipelining: 0 })

  async function send(address: string, { signal, ...init }: RequestInit, type: RequestType): Promise<Response> {
    // The signal is not passed to `Request`, because in jsdom it belongs to jsdom, and Node would reject it.
    const first = new Request(new URL(address, origin), init)
    let { url, method } = first
    const initiator = type === 'page' ? new URL(url).origin : origin
    const isForm = type === 'page' && method === 'POST'
    const sendsOrigin = isForm || (type === 'script' && method !== 'GET' && method !== 'HEAD')
    const headers: Record<string, string> = {
      ...HEADERS[type],
      ...(sendsOrigin && { origin: initiator }),
      ...Object.fromEntries(first.headers)
    }
    let body = first.body ? Buffer.from(await first.arrayBuffer()) : undefined
    let site: Site = type === 'page' && !isForm ? 'none' : 'same-origin'
    for (let redirects = 0; ; redirects++) {
      const target = new URL(url)
      site = site === 'none' ? site : farther(site, siteOf(target, initiator))
      const usesCookies =
        type === 'page' || first.credentials === 'include' || (first.credentials !== 'omit' && target.origin === origin)
      const cookie = usesCookies && cookies.for(target)
      const sent = { 'sec-fetch-site': site, ...headers, ...(cookie && { cookie }) }
      const message = await request(url, {
        method: method as Dispatcher.HttpMethod,
        headers: sent,
        body,
        signal,
        dispatcher
      })
      if (usesCookies) cookies.store(target, [message.headers['set-cookie'] ?? []].flat())
      const { statusCode } = message
      const location = REDIRECTS.has(statusCode) ? message.headers.location : undefined
      if (location === undefined || first.redirect === 'manual')
        return responseOf(message, method, { url, redirected: redirects > 0 })
      await message.body.dump()
      if (first.redirect === 'error')
        throw new TypeError(`${address} redirects to ${location}, but redirect is "error"`)
      if (redirects === MAX_REDIRECTS) throw new TypeError(`${address} leads to more than ${MAX_REDIRECTS} redirects`)
      url = new URL(location, url).href
      // Other redirects turn a POST into a GET without a body (Fetch, HTTP-redirect fetch).
      if (statusCode === 307 || statusCode === 308 || method === 'HEAD') continue
      method = 'GET'
      body = undefined
      delete headers['content-type']
      delete headers.origin
    }
  }

  return {
    fetch: (address, init = {}) => send(address, init, 'script'),
    open: (address, init = {}) => send(address, init, 'page'),
    cookieHeader: (path = '/') => cookies.for(new URL(path, origin))
  }
}

type RequestType = 'script' | 'page'
type Site = 'none' | 'same-origin' | 'same-site' | 'cross-site'

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const HEADERS: Readonly<Record<RequestType, Readonly<Record<string, string>>>> = {
  script: { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  page: { accept: PAGE_TYPES, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
}

/** Returns the value of `Sec-Fetch-Site` for a request to `target` that a page of `initiator` causes. */
function siteOf(target: URL, initiator: string): Site {
  if (target.origin === initiator) return 'same-origin'
  return target.hostname === new URL(initiator).hostname ? 'same-site' : 'cross-site'
}

/** Returns the one of two values that is farther from `same-origin`. All URLs of a redirect chain count (W3C Fetch Metadata). */
function farther(one: Site, other: Site): Site {
  const order: readonly Site[] = ['same-origin', 'same-site', 'cross-site']
  return order[Math.max(order.indexOf(one), order.indexOf(other))] ?? other
}

type Facts = Pick<Response, 'url' | 'redirected'>

function responseOf(message: Dispatcher.ResponseData, method: string, { url, redirected }: Facts): Response {
  const { statusCode: status, statusText } = message
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(message.headers))
    for (const value of [values].flat()) headers.append(name, value)
  const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
  const body = hasBody ? (Readable.toWeb(message.body) as ReadableStream) : null
  const response = new Response(body, { status, statusText, headers })
  return Object.defineProperties(response, { url: { value: url }, redirected: { value: redirected } })
}

interface Cookie {
  readonly name: string
  readonly value: string
  readonly host: string
  readonly path: string
}

/** Keeps cookies until they are deleted. Ignores the attributes that do not matter on one machine. */
function createCookies() {
  const cookies = new Map<string, Cookie>()

  return {
    store({ hostname: host, pathname }: URL, lines: readonly string[]) {
      for (const line of lines) {
        const [, name = '', value = ''] = /^\s*([^=;]+)=([^;]*)/.exec(line) ?? []
        const path = /;\s*path=(\/[^;]*)/i.exec(line)?.[1] ?? (pathname.replace(/\/[^/]*$/, '') || '/')
        const key = JSON.stringify([host, path, name])
        if (isExpired(line)) cookies.delete(key)
        else cookies.set(key, { name, value, host, path })
      }
    },
    for({ hostname, pathname }: URL): string {
      return [...cookies.values()]
        .filter(({ host, path }) => host === hostname && `${pathname}/`.startsWith(path.replace(/\/?$/, '/')))
        .map(({ name, value }) => `${name}=${value}`)
        .join('; ')
    }
  }
}

/** True if a `Set-Cookie` line deletes its cookie (RFC 6265 section 3.1). */
function isExpired(line: string): boolean {
  const [, maxAge] = /;\s*max-age=(-?\d+)/i.exec(line) ?? []
  const [, expires = ''] = /;\s*expires=([^;]*)/i.exec(line) ?? []
  return maxAge === undefined ? Date.parse(expires) <= Date.now() : Number(maxAge) <= 0
}
