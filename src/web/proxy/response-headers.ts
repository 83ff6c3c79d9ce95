/**
 * Selects the headers of an upstream's response for the browser, and adds headers that protect the browser. Only
 * headers on a list are forwarded. Headers that control the browser or a proxy in front of this server are not on the
 * list, for example Set-Cookie, the CORS headers, X-Accel-Redirect and Speculation-Rules.
 */

import { util } from 'undici'
import { fillPattern, matchPattern } from '../../config/types/path-pattern.js'
import type { ProxyRule } from '../../config/types/proxy-rules.js'
import type { FindRoute, ForwardRoute } from './routes.js'

const FORWARDED = [
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range'],
  ...['content-disposition', 'content-md5', 'digest', 'accept-ranges', 'range', 'etag', 'last-modified'],
  ...['date', 'age', 'expires', 'retry-after', 'location', 'allow', 'link', 'x-total-count']
]
const FORWARDED_PREFIXES = /^(x-ads-|x-ratelimit-|ratelimit(-|$)|upload-|tus-)/
// These headers have an effect on the response of this server, but are not forwarded unchanged.
const READ = new Set(['cache-control', 'vary', 'connection', 'transfer-encoding'])

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

/** The values of each header, in the form of `setHeader`. A list is sent as separate header fields. */
type ResponseHeaders = ReadonlyMap<string, string | string[]>

/** @param additional the names of additional headers to forward, from the setting `apiProxy.responseHeaders` */
export function createResponseHeaders(additional: readonly string[]) {
  const allowed = new Set([...FORWARDED, ...additional.map(name => name.toLowerCase())])
  const isRead = (name: string) => allowed.has(name) || READ.has(name) || FORWARDED_PREFIXES.test(name)

  return function responseHeaders(head: ResponseHead, { mapLocation, setsCookie }: ResponseContext): ResponseHeaders {
    const { statusCode, rawHeaders } = head
    const headers = collect(rawHeaders, isRead)
    for (const name of namedByConnection(headers.get('connection'))) headers.delete(name)
    // A response must not have a Content-Length if it has a Transfer-Encoding (RFC 9112 section 6.2) or status 204 (RFC 9110
    // section 8.6). Node changes the bytes of a Content-Disposition after a Content-Length, so the length moves to the end.
    const mustHaveNone = statusCode === 204 || headers.has('transfer-encoding')
    const length = mustHaveNone ? undefined : headers.get('content-length')
    headers.delete('content-length')
    if (length !== undefined) headers.set('content-length', length)
    headers.delete('connection')
    headers.delete('transfer-encoding')
    replace(headers, 'location', ([location = '']) => mapLocation(location))
    replace(headers, 'link', linksToPages)
    headers.set('cache-control', setsCookie ? NOT_STORED : privateOnly(valuesOf(headers, 'cache-control')))
    headers.set('vary', withCookie(valuesOf(headers, 'vary')))
    headers.set('x-content-type-options', 'nosniff')
    headers.set('cross-origin-resource-policy', 'same-origin')
    // A browser that gets a 304 changes the headers of the stored response (RFC 9111 section 3.2), so it must not get those of its
    // content without the policy that belongs to them.
    if (statusCode === 304) headers.delete('content-type')
    else headers.set('content-security-policy', policyOf(statusCode, valuesOf(headers, 'content-type')))
    return headers
  }
}

// Header values are bytes. They are read and written as latin1, which does not change the bytes.
function collect(rawHeaders: readonly Buffer[], isRead: (name: string) => boolean): Map<string, string | string[]> {
  const headers = new Map<string, string | string[]>()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = util.headerNameToString(rawHeaders[index] as Buffer)
    if (!isRead(name)) continue
    const value = (rawHeaders[index + 1] as Buffer).toString('latin1')
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : [before, value].flat())
  }
  return headers
}

function valuesOf(headers: ResponseHeaders, name: string): readonly string[] {
  const values = headers.get(name) ?? []
  return typeof values === 'string' ? [values] : values
}

/** Replaces the values of a header, if there is one. Removes the header if `change` returns undefined. */
function replace(
  headers: Map<string, string | string[]>,
  name: string,
  change: (values: readonly string[]) => string | undefined
): void {
  if (!headers.has(name)) return
  const changed = change(valuesOf(headers, name))
  if (changed === undefined) headers.delete(name)
  else headers.set(name, changed)
}

/** Returns the names of the upstream's headers that are neither forwarded nor replaced, in lower case and without duplicates. */
export function namesDropped({ rawHeaders }: ResponseHead, headers: ResponseHeaders): string[] {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toString('latin1').toLowerCase())
  return [...new Set(names)].filter(name => !headers.has(name) && !FRAMING.has(name))
}

const FRAMING = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length'])

/**
 * The content of a response may come from other users of the upstream. The policy prevents it from running scripts in the origin of
 * this server, from sending forms, and from loading anything (CSP level 3). The types in `CANNOT_RUN` contain no scripts. WebKit shows
 * nothing of them with `sandbox`, and makes its viewer as large as the tab with an inline style.
 */
function policyOf(statusCode: number, contentTypes: readonly string[]): string {
  const [type = ''] = contentTypes
  if (SVG.test(type)) return `sandbox; ${STYLED}`
  // If there are several types, browsers decide differently which one counts (RFC 9110 section 5.3).
  const isSafe = (statusCode === 200 || statusCode === 206) && contentTypes.length === 1 && CANNOT_RUN.test(type)
  return isSafe ? STYLED : `sandbox; ${POLICY}`
}

const POLICY = "default-src 'none'; form-action 'none'; base-uri 'none'"
const STYLED = `${POLICY}; style-src 'unsafe-inline'`
const SVG = /^image\/svg\+xml *(;|$)/i
const CANNOT_RUN =
  /^(application\/pdf|image\/(png|jpeg|gif|webp|avif|bmp)|(audio|video)\/(?![^;]*\+xml)[\w.+-]+) *(;[^,]*)?$/i

// Other relations direct browsers, for example `preload` and `stylesheet` (RFC 8288 section 3.3).
const LINK = /<[^<>]*>(?:\s*;\s*[^\s,;="]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,;"]*))?)*/g
const RELATIONS = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s,;"]*))/gi
const PAGES = new Set(['first', 'prev', 'next', 'last', 'self'])

function linksToPages(values: readonly string[]): string | undefined {
  const links = values.join(', ').match(LINK) ?? []
  const kept = links.filter(link => {
    const given = [...link.replace(/^<[^<>]*>/, '').matchAll(RELATIONS)]
    const relations = given.flatMap(([, quoted, token]) => (quoted ?? token ?? '').toLowerCase().split(/\s+/))
    return given.length === 1 && relations.every(relation => PAGES.has(relation))
  })
  return kept.length === 0 ? undefined : kept.join(', ')
}

function namedByConnection(values: string | readonly string[] | undefined): readonly string[] {
  if (values === undefined || (typeof values === 'string' && /^(keep-alive|close)$/i.test(values))) return NO_NAMES
  return listOf([values].flat())
}

const NO_NAMES: readonly string[] = []

function listOf(values: readonly string[]): string[] {
  return values.flatMap(value => value.split(',')).map(item => item.trim().toLowerCase())
}

const NOT_STORED = 'private, no-store'

// One directive of Cache-Control. Its value may be a quoted list, as in `no-cache="a, b"` (RFC 9111 section 5.2).
const DIRECTIVE = /[^\s,="]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/g
// These directives are removed, because every response gets `private`.
const FOR_SHARED_CACHES = /^(public|private|s-maxage|proxy-revalidate)\b/i

function privateOnly(values: readonly string[]): string {
  if (values.length === 0) return NOT_STORED
  const directives = values.join(', ').match(DIRECTIVE) ?? []
  const kept = directives.filter(directive => !FOR_SHARED_CACHES.test(directive))
  return directives.length === 0 ? NOT_STORED : ['private', ...kept].join(', ')
}

function withCookie(values: readonly string[]): string {
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
