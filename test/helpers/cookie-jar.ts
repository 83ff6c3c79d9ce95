// A cookie jar with a browser's rules (RFC 6265bis, draft 20). It silently drops the cookies that a browser drops,
// because a cookie dropped by the browser ends a session. It also drops every cookie with the attribute Domain, which this server and
// the identity providers of the tests never set, because a cookie must not be shared with other hosts.

export interface Cookie {
  readonly name: string
  value: string
  readonly host: string
  readonly path: string
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'Strict' | 'Lax' | 'None' | undefined
  /** Milliseconds since the epoch, or undefined for a cookie that lasts until the browser closes. */
  readonly expiresAt: number | undefined
  readonly createdAt: number
}

export interface CookieJar {
  /** Stores the cookies that a browser would store from the Set-Cookie lines of a response of `url`. */
  receive(url: URL, setCookieLines: readonly string[]): void
  /**
   * Returns the Cookie header for a request to `url`, or undefined if no cookie applies. `sameSite` is `strict` for a request
   * from our own site, `lax` for a link from another site, and `none` for a subresource on another site.
   */
  header(url: URL, query?: { readonly sameSite?: 'strict' | 'lax' | 'none' }): string | undefined
  all(): readonly Cookie[]
  get(name: string): Cookie | undefined
  value(name: string): string | undefined
  /**
   * Changes the value of a stored cookie as an attacker would, or adds a cookie for the host of `url` without checking
   * any rule.
   */
  set(name: string, value: string, url?: URL): void
  delete(name: string): void
  clear(): void
  clone(): CookieJar
}

const maxPairBytes = 4096
const maxAttributeBytes = 1024
const maxLifetimeMs = 400 * 24 * 3600 * 1000

export function createCookieJar(now: () => number = Date.now, initial: readonly Cookie[] = []): CookieJar {
  let cookies: Cookie[] = initial.map(cookie => ({ ...cookie }))
  let order = Math.max(0, ...cookies.map(cookie => cookie.createdAt)) + 1

  const living = () => {
    cookies = cookies.filter(cookie => cookie.expiresAt === undefined || cookie.expiresAt > now())
    return cookies
  }

  function receiveOne(url: URL, line: string): void {
    const parsed = parseSetCookie(line)
    if (!parsed) return
    const cookie = acceptCookie(parsed, url, now(), order++)
    if (!cookie) return
    // Section 5.7: a cookie from plain http may not replace a cookie that was set over https.
    if (!isSecure(url) && living().some(other => other.secure && overlays(cookie, other))) return
    const old = cookies.findIndex(other => isSameCookie(other, cookie))
    if (old === -1) cookies.push(cookie)
    else cookies[old] = { ...cookie, createdAt: cookies[old]?.createdAt ?? cookie.createdAt }
  }

  return {
    receive(url, lines) {
      for (const line of lines) receiveOne(url, line)
      living()
    },
    header(url, { sameSite = 'strict' } = {}) {
      const sent = living()
        .filter(cookie => goesTo(cookie, url) && isAllowed(cookie, sameSite))
        .sort((a, b) => b.path.length - a.path.length || a.createdAt - b.createdAt)
      if (sent.length === 0) return undefined
      return sent.map(({ name, value }) => (name === '' ? value : `${name}=${value}`)).join('; ')
    },
    all: () => living().map(cookie => ({ ...cookie })),
    get: name => living().find(cookie => cookie.name === name),
    value: name => living().find(cookie => cookie.name === name)?.value,
    set(name, value, url) {
      const existing = living().find(cookie => cookie.name === name)
      if (existing) {
        existing.value = value
        return
      }
      if (!url) throw new Error(`There is no cookie ${name}; say for which url it is to be made.`)
      cookies.push({
        name,
        value,
        host: url.hostname,
        path: '/',
        secure: isSecure(url),
        httpOnly: true,
        sameSite: 'Lax',
        expiresAt: undefined,
        createdAt: order++
      })
    },
    delete(name) {
      cookies = cookies.filter(cookie => cookie.name !== name)
    },
    clear() {
      cookies = []
    },
    clone: () => createCookieJar(now, living())
  }
}

export interface SetCookie {
  readonly name: string
  readonly value: string
  /**
   * Names are in lower case, and an attribute without a value is an empty string. If a name is repeated, the last one
   * counts.
   */
  readonly attributes: Readonly<Record<string, string>>
  readonly line: string
}

/** Section 5.6. Returns undefined for a line that a browser ignores. */
export function parseSetCookie(line: string): SetCookie | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the standard lists exactly these characters
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(line)) return undefined
  const [pair = '', ...rest] = line.split(';')
  const equals = pair.indexOf('=')
  const name = equals === -1 ? '' : trim(pair.slice(0, equals))
  const value = trim(pair.slice(equals + 1))
  if (name === '' && value === '') return undefined
  if (Buffer.byteLength(name) + Buffer.byteLength(value) > maxPairBytes) return undefined
  const attributes: Record<string, string> = {}
  for (const part of rest) {
    const at = part.indexOf('=')
    const key = trim(at === -1 ? part : part.slice(0, at)).toLowerCase()
    const text = at === -1 ? '' : trim(part.slice(at + 1))
    if (Buffer.byteLength(text) <= maxAttributeBytes) attributes[key] = text
  }
  return { name, value, attributes, line }
}

/** Section 5.7. Returns the cookie to store, or undefined if a browser would refuse it. */
function acceptCookie(parsed: SetCookie, url: URL, now: number, createdAt: number): Cookie | undefined {
  const { name, value, attributes } = parsed
  const has = (attribute: string) => Object.hasOwn(attributes, attribute)
  if (has('domain')) return undefined
  const secure = has('secure')
  if (secure && !isSecure(url)) return undefined
  const sameSite = sameSiteOf(attributes.samesite)
  if (sameSite === 'None' && !secure) return undefined

  const givenPath = attributes.path
  const path = givenPath?.startsWith('/') ? givenPath : defaultPath(url)
  const cookie: Cookie = {
    name,
    value,
    host: url.hostname,
    path,
    secure,
    httpOnly: has('httponly'),
    sameSite,
    expiresAt: expiryOf(attributes, now),
    createdAt
  }
  return keepsPrefixPromise(cookie, givenPath === '/') ? cookie : undefined
}

function keepsPrefixPromise(cookie: Cookie, rootPathGiven: boolean): boolean {
  const name = (cookie.name === '' ? cookie.value : cookie.name).toLowerCase()
  const isHost = name.startsWith('__host-')
  const isHttp = name.startsWith('__http-') || name.startsWith('__host-http-')
  const isPrefixed = isHost || isHttp || name.startsWith('__secure-')
  if (isPrefixed && (!cookie.secure || cookie.name === '')) return false
  if (isHost && !rootPathGiven) return false
  return !isHttp || cookie.httpOnly
}

/** Max-Age takes precedence over Expires. A value that cannot be parsed is ignored. */
function expiryOf(attributes: Readonly<Record<string, string>>, now: number): number | undefined {
  const maxAge = attributes['max-age']
  if (maxAge !== undefined && /^-?\d+$/.test(maxAge)) {
    const ms = Number(maxAge) * 1000
    return ms <= 0 ? Number.NEGATIVE_INFINITY : now + Math.min(ms, maxLifetimeMs)
  }
  const expires = Date.parse(attributes.expires ?? '')
  return Number.isNaN(expires) ? undefined : Math.min(expires, now + maxLifetimeMs)
}

function goesTo(cookie: Cookie, url: URL): boolean {
  // The port is not compared, because browsers share cookies between all ports of a host (section 8.5).
  return url.hostname === cookie.host && pathMatches(url.pathname, cookie.path) && (!cookie.secure || isSecure(url))
}

/** A cookie without SameSite is treated as Lax, as in today's browsers. */
function isAllowed(cookie: Cookie, context: 'strict' | 'lax' | 'none'): boolean {
  if (context === 'strict' || cookie.sameSite === 'None') return true
  return context === 'lax' && cookie.sameSite !== 'Strict'
}

function overlays(cookie: Cookie, secureOne: Cookie): boolean {
  return cookie.name === secureOne.name && cookie.host === secureOne.host && pathMatches(cookie.path, secureOne.path)
}

function isSameCookie(a: Cookie, b: Cookie): boolean {
  return a.name === b.name && a.host === b.host && a.path === b.path
}

function pathMatches(requestPath: string, cookiePath: string): boolean {
  if (requestPath === cookiePath) return true
  return requestPath.startsWith(cookiePath) && (cookiePath.endsWith('/') || requestPath[cookiePath.length] === '/')
}

function defaultPath(url: URL): string {
  const lastSlash = url.pathname.lastIndexOf('/')
  return lastSlash <= 0 ? '/' : url.pathname.slice(0, lastSlash)
}

function sameSiteOf(text: string | undefined): Cookie['sameSite'] {
  const known = { strict: 'Strict', lax: 'Lax', none: 'None' } as const
  const key = text?.toLowerCase()
  return key === 'strict' || key === 'lax' || key === 'none' ? known[key] : undefined
}

// Plain http to localhost is not secure here. Browsers differ in this, and the strict reading finds more mistakes.
function isSecure(url: URL): boolean {
  return url.protocol === 'https:'
}

function trim(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '')
}
