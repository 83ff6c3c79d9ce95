/**
 * Selects the headers of an upstream's response for the browser, and adds headers that protect the browser. Only
 * headers on a list are forwarded. Headers that control the browser or a proxy in front of this server are not on the
 * list, for example Set-Cookie, the CORS headers, X-Accel-Redirect and Speculation-Rules.
 */

import { fillPattern, matchPattern } from '../../config/path-pattern.js'
import type { ProxyRule } from '../../config/proxy-rules.js'
import type { FindRoute, ForwardRoute } from './routes.js'

const FORWARDED = [
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range'],
  ...['content-disposition', 'content-md5', 'digest', 'accept-ranges', 'range', 'etag', 'last-modified'],
  ...['date', 'age', 'expires', 'retry-after', 'location', 'allow']
]
const FORWARDED_PREFIXES = /^(x-ads-|x-ratelimit-|ratelimit(-|$))/

export interface ResponseHead {
  readonly statusCode: number
  /** The headers as the upstream sent them: each name is followed by its value. */
  readonly rawHeaders: readonly Buffer[]
}

interface ResponseContext {
  /** Returns the value of the Location header for the browser, or undefined if the response must have none. */
  readonly mapLocation: (location: string) => string | undefined
  /** True if this server adds a cookie to the response. */
  readonly setsCookie: boolean
}

/** The values of each header. Each value is sent as a separate header field. */
type ResponseHeaders = ReadonlyMap<string, readonly string[]>

/** @param additional the names of additional headers to forward, from the setting `apiProxy.responseHeaders` */
export function createResponseHeaders(additional: readonly string[]) {
  const allowed = new Set([...FORWARDED, ...additional.map(name => name.toLowerCase())])

  return function responseHeaders(head: ResponseHead, { mapLocation, setsCookie }: ResponseContext): ResponseHeaders {
    const all = collect(head.rawHeaders)
    const headers = new Map<string, readonly string[]>()
    const hopByHop = namedByConnection(all.get('connection'))
    for (const [name, values] of all) {
      if ((allowed.has(name) || FORWARDED_PREFIXES.test(name)) && !hopByHop.includes(name)) headers.set(name, values)
    }
    // A response must not have a Content-Length if it has a Transfer-Encoding (RFC 9112 section 6.2) or status 204 (RFC
    // 9110 section 8.6).
    if (all.has('transfer-encoding') || head.statusCode === 204) headers.delete('content-length')
    const [location] = headers.get('location') ?? []
    headers.delete('location')
    const mapped = location === undefined ? undefined : mapLocation(location)
    if (mapped !== undefined) headers.set('location', [mapped])
    headers.set('cache-control', [setsCookie ? NOT_STORED : privateOnly(all.get('cache-control'))])
    headers.set('vary', [withCookie(all.get('vary'))])
    for (const [name, value] of PROTECTION) headers.set(name, [value])
    return headers
  }
}

/**
 * The content of a response may come from other users of the upstream. These headers prevent scripts in the content
 * from running in the origin of this server (CSP level 3 `sandbox`), and prevent other sites from loading the content.
 */
const PROTECTION: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "sandbox; default-src 'none'"],
  ['cross-origin-resource-policy', 'same-origin']
]

// Header values are bytes. They are read and written as latin1, which does not change the bytes.
function collect(rawHeaders: readonly Buffer[]): Map<string, string[]> {
  const all = new Map<string, string[]>()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as Buffer).toString('latin1').toLowerCase()
    const value = (rawHeaders[index + 1] as Buffer).toString('latin1')
    const values = all.get(name)
    if (values) values.push(value)
    else all.set(name, [value])
  }
  return all
}

const NO_NAMES: readonly string[] = []

function namedByConnection(values: readonly string[] | undefined): readonly string[] {
  const [first = ''] = values ?? NO_NAMES
  return values === undefined || (values.length === 1 && /^(keep-alive|close)$/i.test(first))
    ? NO_NAMES
    : listOf(values)
}

function listOf(values: readonly string[] = []): string[] {
  return values.flatMap(value => value.split(',')).map(item => item.trim().toLowerCase())
}

const NOT_STORED = 'private, no-store'

// One directive of Cache-Control. Its value may be a quoted list, as in `no-cache="a, b"` (RFC 9111 section 5.2).
const DIRECTIVE = /[^\s,="]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/g
// These directives are removed, because every response gets `private`.
const FOR_SHARED_CACHES = /^(public|private|s-maxage|proxy-revalidate)\b/i

function privateOnly(values: readonly string[] = []): string {
  if (values.length === 0) return NOT_STORED
  const directives = values.join(', ').match(DIRECTIVE) ?? []
  const kept = directives.filter(directive => !FOR_SHARED_CACHES.test(directive))
  return directives.length === 0 ? NOT_STORED : ['private', ...kept].join(', ')
}

function withCookie(values: readonly string[] = []): string {
  if (values.length === 0) return 'Cookie'
  const names = listOf(values)
  if (names.includes('*')) return '*'
  return names.includes('cookie') ? values.join(', ') : [...values, 'Cookie'].join(', ')
}

/**
 * Creates the function that converts an upstream's Location header for the browser. If the URL belongs to the upstream
 * and matches the target of the rule, the result is the path of this server that the rule forwards to this URL. Any
 * other Location becomes an absolute URL (RFC 9110 section 10.2.2).
 * @param basePath the path that a reverse proxy removes from the URLs of this server, otherwise empty
 */
export function createMapLocation(findRoute: FindRoute, basePath: string) {
  type Requested = Pick<ForwardRoute, 'rule' | 'target'>

  /** Returns undefined if the location is not an http or https URL. */
  return function mapLocation(location: string, { rule, target }: Requested): string | undefined {
    const base = `${rule.targetOrigin}${target}`
    const ascii = location.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
    if (!URL.canParse(ascii, base)) return undefined
    const url = new URL(ascii, base)
    // A redirect of an API must not open a URL with another scheme, such as javascript: or file:.
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
    const path = url.origin === rule.targetOrigin && url.username === '' ? pathOf(rule, url.pathname) : undefined
    if (path === undefined || !leadsBack(path, url)) return url.href
    return `${basePath}${path}${url.search}${url.hash}`
  }

  function leadsBack(path: string, { origin, pathname }: URL): boolean {
    const route = findRoute('GET', path)
    if (route?.kind !== 'forward') return route?.kind === 'wrongMethod'
    return route.rule.targetOrigin === origin && route.target === pathname
  }
}

function pathOf({ target, path }: ProxyRule, pathname: string): string | undefined {
  const captured = matchPattern(target, pathname.slice(1).split('/'))
  return captured && fillPattern(path, captured)
}
