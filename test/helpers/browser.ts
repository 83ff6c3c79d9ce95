// A browser as a server sees it: a cookie jar with a browser's rules, redirects that are followed only if a test asks
// for it, and the Sec-Fetch-* headers that a page, a link or another site would cause.
import http from 'node:http'
import type { ExecutionContext } from 'ava'
import { type CookieJar, createCookieJar, parseSetCookie, type SetCookie } from './cookie-jar.js'

interface BrowserOptions {
  /** The public address of the server under test. Paths without a host are requested there. */
  readonly origin?: string
  /**
   * The http address to connect to for an origin, as a DNS entry or a TLS-terminating proxy would arrange it. URLs, the Host
   * header and the cookies keep the public origin, so a server on a free port can appear as https://app.example.
   */
  readonly connectTo?: Readonly<Record<string, string>>
  /** A path prefix that a reverse proxy in front of `origin` removes, such as `/app`. */
  readonly strippedPath?: string
  readonly now?: () => number
  readonly cookies?: CookieJar
}

interface RequestOptions {
  /** Sent unchanged. An array sends the header more than once, and undefined removes a header. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Follow redirects as a navigation does, including redirects to other hosts. */
  readonly follow?: boolean
  readonly body?: string | Buffer
  readonly form?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

interface NavigateOptions extends RequestOptions {
  /** The origin of the page that contains the link, or `address-bar` (the default). */
  readonly from?: string
}

interface FetchOptions extends RequestOptions {
  readonly method?: string
  /** The origin of the page whose script makes the request. The default is the browser's own origin. */
  readonly from?: string
  /** `empty` is a call of fetch(). The other values are elements of the page. */
  readonly dest?: 'empty' | 'image' | 'script' | 'style'
}

export interface BrowserResponse {
  readonly url: URL
  readonly statusCode: number
  readonly headers: http.IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly setCookies: readonly SetCookie[]
  readonly body: Buffer
  /** All responses of a redirect chain, in order. The last one is this response. */
  readonly hops: readonly BrowserResponse[]
  text(): string
  json<T = Record<string, unknown>>(): T
}

export interface Browser {
  readonly origin: string | undefined
  readonly cookies: CookieJar
  /** A request with all cookies but without Sec-Fetch headers, as curl sends it with a cookie jar. */
  get(url: string, options?: RequestOptions): Promise<BrowserResponse>
  request(method: string, url: string, options?: RequestOptions): Promise<BrowserResponse>
  /** The user opens a URL or follows a link. */
  navigate(url: string, options?: NavigateOptions): Promise<BrowserResponse>
  /** A script or an element of a page makes a request. */
  fetch(url: string, options?: FetchOptions): Promise<BrowserResponse>
  /** Connects to `address` for every later request to `origin`. */
  connectTo(origin: string, address: string): void
  /** A copy with its own cookie jar, to act as an old tab, a backup or a thief. */
  clone(): Browser
  close(): void
}

const maxRedirects = 10

export function createBrowser(t: Pick<ExecutionContext, 'teardown'>, options: BrowserOptions = {}): Browser {
  const { origin, now = Date.now, strippedPath = '' } = options
  const cookies = options.cookies ?? createCookieJar(now)
  const addresses = new Map(Object.entries(options.connectTo ?? {}))
  // An idle connection is closed long before a server would close it. Otherwise a busy process could send a request just before
  // it handles the time limit of the server, and the request would fail.
  const agent = new http.Agent({ keepAlive: true, timeout: 30_000 })
  const close = () => agent.destroy()
  t.teardown(close)

  const ownOrigin = origin === undefined ? undefined : new URL(origin).origin
  const strip = (path: string) => (path.startsWith(`${strippedPath}/`) ? path.slice(strippedPath.length) : path)

  const absolute = (url: string) => {
    if (/^https?:/i.test(url)) return new URL(url)
    if (!origin) throw new Error(`This browser has no origin to open ${url} at.`)
    // The texts are joined because new URL() would normalize `//host` and dot segments before the server sees them.
    return new URL(origin + url)
  }

  async function run(method: string, target: string, options: RequestOptions, page?: Page): Promise<BrowserResponse> {
    const hops: BrowserResponse[] = []
    const visited: URL[] = []
    let url = absolute(target)
    // The first request uses the exact path, because tests of unusual paths need it unchanged.
    let path = /^https?:/i.test(target) ? undefined : (target.split('#', 1)[0] ?? '')
    let verb = method
    for (;;) {
      visited.push(url)
      const site = page && siteOf(page, visited)
      const cookie = cookies.header(url, page ? { sameSite: sameSiteContext(page, verb, visited) } : {})
      const response = await send({
        method: verb,
        url,
        path: url.origin === ownOrigin ? strip(path ?? url.pathname + url.search) : url.pathname + url.search,
        address: new URL(addresses.get(url.origin) ?? url.origin),
        agent,
        headers: { ...(page && pageHeaders(page, site ?? 'none', url)), ...(cookie && { cookie }), ...options.headers },
        body: verb === method ? bodyOf(options) : undefined,
        signal: options.signal,
        hops
      })
      hops.push(response)
      cookies.receive(
        url,
        response.setCookies.map(({ line }) => line)
      )
      const location = response.headers.location
      if (!options.follow || location === undefined || ![301, 302, 303, 307, 308].includes(response.statusCode)) {
        return response
      }
      if (hops.length > maxRedirects)
        throw new Error(`More than ${maxRedirects} redirects, the last one to ${location}`)
      url = new URL(location, url)
      path = undefined
      if (response.statusCode < 307 && verb !== 'HEAD') verb = 'GET'
    }
  }

  return {
    origin,
    cookies,
    get: (url, options = {}) => run('GET', url, options),
    request: (method, url, options = {}) => run(method, url, options),
    navigate: (url, { from = 'address-bar', ...options } = {}) =>
      run('GET', url, options, { mode: 'navigate', from, dest: 'document' }),
    fetch: (url, { from = origin ?? '', dest = 'empty', method = 'GET', ...options } = {}) =>
      run(method, url, options, { mode: dest === 'empty' ? 'cors' : 'no-cors', from, dest }),
    connectTo: (publicOrigin, address) => {
      addresses.set(new URL(publicOrigin).origin, address)
    },
    clone: () => createBrowser(t, { ...options, connectTo: Object.fromEntries(addresses), cookies: cookies.clone() }),
    close
  }
}

/** The source of a request. It determines the Sec-Fetch-* headers and the SameSite cookies that are sent. */
interface Page {
  readonly mode: 'navigate' | 'cors' | 'no-cors'
  readonly dest: string
  readonly from: string
}

type Site = 'none' | 'same-origin' | 'same-site' | 'cross-site'

/**
 * Fetch Metadata, "set the Sec-Fetch-Site header": every address of a redirect chain counts, so a redirect through
 * another site makes the request cross-site.
 */
function siteOf(page: Page, visited: readonly URL[]): Site {
  if (page.from === 'address-bar') return 'none'
  const from = new URL(page.from)
  let site: Site = 'same-origin'
  for (const url of visited) {
    if (url.origin === from.origin) continue
    if (!isSameSite(url, from)) return 'cross-site'
    site = 'same-site'
  }
  return site
}

/** RFC 6265bis section 5.2, but without regard to the redirect chain, as in today's browsers. */
function sameSiteContext(page: Page, method: string, visited: readonly URL[]): 'strict' | 'lax' | 'none' {
  const target = visited.at(-1)
  if (page.from === 'address-bar' || (target && isSameSite(target, new URL(page.from)))) return 'strict'
  return page.mode === 'navigate' && method === 'GET' ? 'lax' : 'none'
}

/**
 * Compares the schemes and the last two labels of the host. The last two labels are the registrable domain of every
 * host that the tests use.
 */
function isSameSite(a: URL, b: URL): boolean {
  const site = (host: string) => (/^[\d.]+$|^\[/.test(host) ? host : host.split('.').slice(-2).join('.'))
  return a.protocol === b.protocol && site(a.hostname) === site(b.hostname)
}

function pageHeaders(page: Page, site: Site, url: URL): Record<string, string> {
  const isNavigation = page.mode === 'navigate'
  // Browsers send Sec-Fetch-* only to trustworthy addresses: https and the local machine.
  const isTrustworthy = url.protocol === 'https:' || /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)
  return {
    accept: isNavigation ? 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' : '*/*',
    'accept-language': 'en-US,en;q=0.5',
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    ...(isNavigation && { 'upgrade-insecure-requests': '1' }),
    ...(isTrustworthy && {
      'sec-fetch-site': site,
      'sec-fetch-mode': page.mode,
      'sec-fetch-dest': page.dest,
      ...(isNavigation && { 'sec-fetch-user': '?1' })
    }),
    ...(page.mode === 'cors' && site !== 'same-origin' && { origin: page.from })
  }
}

interface Outgoing {
  readonly method: string
  readonly url: URL
  readonly path: string
  readonly address: URL
  readonly agent: http.Agent
  readonly headers: RequestOptions['headers']
  readonly body: { readonly content: string | Buffer; readonly type: string | undefined } | undefined
  readonly signal: AbortSignal | undefined
  readonly hops: readonly BrowserResponse[]
}

function send({ method, url, path, address, agent, headers = {}, body, signal, hops }: Outgoing) {
  const outgoing: http.OutgoingHttpHeaders = { host: url.host }
  if (body?.type) outgoing['content-type'] = body.type
  if (body) outgoing['content-length'] = Buffer.byteLength(body.content)
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) delete outgoing[name.toLowerCase()]
    else outgoing[name.toLowerCase()] = typeof value === 'string' ? value : [...value]
  }
  return new Promise<BrowserResponse>((resolve, reject) => {
    const request = http.request({
      method,
      protocol: address.protocol,
      host: address.hostname.replace(/^\[|\]$/g, ''),
      port: address.port,
      path,
      headers: outgoing,
      setHost: false,
      agent,
      ...(signal && { signal })
    })
    request.on('error', reject)
    request.on('response', response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => resolve(received(url, response, Buffer.concat(chunks), hops)))
    })
    request.end(body?.content)
  })
}

function received(url: URL, response: http.IncomingMessage, body: Buffer, hops: readonly BrowserResponse[]) {
  const lines = response.headers['set-cookie'] ?? []
  const result: BrowserResponse = {
    url,
    statusCode: response.statusCode ?? 0,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    setCookies: lines.map(line => parseSetCookie(line) ?? { name: '', value: '', attributes: {}, line }),
    body,
    hops,
    text: () => body.toString('utf8'),
    json: <T>() => JSON.parse(body.toString('utf8')) as T
  }
  return result
}

function bodyOf({ body, form }: RequestOptions): Outgoing['body'] {
  if (form) return { content: new URLSearchParams({ ...form }).toString(), type: 'application/x-www-form-urlencoded' }
  return body === undefined ? undefined : { content: body, type: undefined }
}
