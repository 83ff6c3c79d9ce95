/**
 * Selects the headers of an upstream's response for the browser, and adds headers of this server. Only headers on an
 * allow-list are forwarded. This excludes headers that control the browser or a proxy in front of this server, such as
 * cookies, CORS, X-Accel-Redirect and Speculation-Rules.
 */

const FORWARDED = [
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range'],
  ...['content-disposition', 'content-md5', 'digest', 'accept-ranges', 'etag', 'last-modified'],
  ...['date', 'age', 'expires', 'retry-after', 'location', 'allow', 'x-request-id']
]
const FORWARDED_PREFIXES = /^(x-ads-|x-ratelimit-|ratelimit(-|$))/

export interface AnswerHead {
  readonly statusCode: number
  /** Names and values alternate. Each is a sequence of bytes. */
  readonly rawHeaders: readonly Buffer[]
}

export interface AnswerContext {
  /** Returns the Location for the browser, or undefined if it must be omitted. */
  readonly mapLocation: (location: string) => string | undefined
  /** True if the response also sets a cookie of this server. */
  readonly setsCookie: boolean
}

/** The values of each header. Each value becomes a header line. */
export type AnswerHeaders = ReadonlyMap<string, readonly string[]>

/** @param additional the names in `proxy.answerHeaders` */
export function createAnswerHeaders(additional: readonly string[]) {
  const allowed = new Set([...FORWARDED, ...additional.map(name => name.toLowerCase())])

  return function answerHeaders(head: AnswerHead, { mapLocation, setsCookie }: AnswerContext): AnswerHeaders {
    const all = collect(head.rawHeaders)
    const headers = new Map<string, readonly string[]>()
    const hopByHop = namedByConnection(all.get('connection'))
    for (const [name, values] of all) {
      if ((allowed.has(name) || FORWARDED_PREFIXES.test(name)) && !hopByHop.includes(name)) headers.set(name, values)
    }
    // A Content-Length is forbidden together with a transfer coding (RFC 9112 section 6.1) and with 204 (RFC 9110 section 8.6).
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
 * The content of a response may come from other users of the upstream. It must not run in our origin (CSP level 3 `sandbox`),
 * and other sites must not read it.
 */
const PROTECTION: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "sandbox; default-src 'none'"],
  ['cross-origin-resource-policy', 'same-origin']
]

// Header values are bytes. They are read and written as latin1, so they stay unchanged.
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

// The value of a directive may be a quoted list, such as `no-cache="a, b"` (RFC 9111 section 5.2).
const DIRECTIVE = /[^\s,="]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/g
// The directives for shared caches.
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
