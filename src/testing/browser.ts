/**
 * A browser without pages, for tests. It keeps cookies, follows redirects, and sends the headers that a real browser
 * sends. Node's `fetch` cannot replace it, because it has no cookies and always sends `Sec-Fetch-Mode: cors`, which the
 * login rejects.
 */
import http, { type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

export interface TestBrowser {
  /**
   * Sends a request as a script in a page of the application would with `fetch`. Follows redirects, unless
   * `init.redirect` is `manual`. With `manual`, returns the redirect response itself. Unlike in a page, its status and
   * headers can be read.
   * @param url a path, or a complete URL
   */
  fetch(url: string, init?: RequestInit): Promise<Response>
  /** Opens a page as the address bar or a form would. Follows redirects, like `fetch`. */
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

  async function send(address: string, init: RequestInit, added: Readonly<Record<string, string>>): Promise<Response> {
    const first = new Request(new URL(address, origin), init)
    const headers = { ...added, ...Object.fromEntries(first.headers) }
    let { url, method } = first
    let body = first.body ? Buffer.from(await first.arrayBuffer()) : undefined
    for (let redirects = 0; ; redirects++) {
      const cookie = cookies.for(new URL(url))
      const message = await exchange(url, { method, headers: { ...headers, ...(cookie && { cookie }) }, body })
      cookies.store(new URL(url), message.headers['set-cookie'] ?? [])
      const { statusCode = 0 } = message
      const location = statusCode >= 300 && statusCode < 400 ? message.headers.location : undefined
      if (location === undefined || first.redirect !== 'follow') return responseOf(message, url, method)
      if (redirects === MAX_REDIRECTS) throw new Error(`${address} leads to more than ${MAX_REDIRECTS} redirects`)
      message.resume()
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
    fetch(address, init = {}) {
      const isSafe = ['GET', 'HEAD', undefined].includes(init.method?.toUpperCase())
      const metadata = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
      return send(address, init, { accept: '*/*', ...metadata, ...(!isSafe && { origin }) })
    },
    open(address, init = {}) {
      const metadata = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      return send(address, init, { accept: PAGE_TYPES, ...metadata })
    },
    cookieHeader: (path = '/') => cookies.for(new URL(path, origin))
  }
}

interface Sent {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

function exchange(url: string, { method, headers, body }: Sent): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Each request has a new connection, because idle connections would delay the end of the server and the test.
    const request = http.request(url, { method, headers, agent: false }, resolve)
    request.once('error', reject)
    request.end(body)
  })
}

function responseOf(message: IncomingMessage, url: string, method: string): Response {
  const { statusCode = 0, statusMessage = '', rawHeaders } = message
  const headers = new Headers()
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers.append(rawHeaders[index] as string, rawHeaders[index + 1] as string)
  const hasBody = method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
  const body = hasBody ? (Readable.toWeb(message) as ReadableStream) : null
  if (!hasBody) message.resume()
  const response = new Response(body, { status: statusCode, statusText: statusMessage, headers })
  return Object.defineProperty(response, 'url', { value: url })
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
