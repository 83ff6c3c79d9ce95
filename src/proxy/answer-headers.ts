/**
 * The headers of an upstream's answer that a browser may see, and what this server adds. An allow-list keeps out whatever steers a
 * browser or a proxy in front of this server: cookies, CORS, X-Accel-Redirect, Speculation-Rules and their successors.
 */

const ALWAYS_PASSED = [
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range'],
  ...['content-disposition', 'content-md5', 'digest', 'accept-ranges', 'etag', 'last-modified'],
  ...['date', 'age', 'expires', 'retry-after', 'location', 'allow', 'x-request-id']
]
const PASSED_FAMILIES = /^(x-ads-|x-ratelimit-|ratelimit(-|$))/

export interface AnswerHead {
  readonly statusCode: number
  /** Names and values in turn, as bytes. */
  readonly rawHeaders: readonly Buffer[]
}

export interface AnswerContext {
  /** Where a Location of the upstream leads from the browser's point of view; undefined drops it. */
  readonly mapLocation: (location: string) => string | undefined
  /** True if the answer also carries a cookie of this server. */
  readonly setsCookie: boolean
}

/** Each name with its values. More than one value means more than one header line. */
export type AnswerHeaders = ReadonlyMap<string, readonly string[]>

/** @param further names from `proxy.answerHeaders` */
export function createAnswerHeaders(further: readonly string[]) {
  const passed = new Set([...ALWAYS_PASSED, ...further.map(name => name.toLowerCase())])

  return function answerHeaders(head: AnswerHead, { mapLocation, setsCookie }: AnswerContext): AnswerHeaders {
    const all = collect(head.rawHeaders)
    const headers = new Map<string, readonly string[]>()
    const hopByHop = namedByConnection(all.get('connection'))
    for (const [name, values] of all) {
      if ((passed.has(name) || PASSED_FAMILIES.test(name)) && !hopByHop.includes(name)) headers.set(name, values)
    }
    // RFC 9112 section 6.1: no length beside a transfer coding, and RFC 9110 section 8.6: none with 204.
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
 * Somebody else may have stored what is answered. In this origin it must neither run nor be read by other sites (RFC 6454,
 * CSP level 3 `sandbox`).
 */
const PROTECTION: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "sandbox; default-src 'none'"],
  ['cross-origin-resource-policy', 'same-origin']
]

// Header values are bytes. Read and written as latin1 they stay what they were.
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

// A directive may quote a list of its own: `no-cache="a, b"` (RFC 9111 section 5.2).
const DIRECTIVE = /[^\s,="]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/g
// Directives for caches that more than one person shares.
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
