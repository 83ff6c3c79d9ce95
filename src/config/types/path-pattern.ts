import { decodings, isEncoded, mergePath, readAsText } from '../../base/path-readings.js'

/** The path patterns of proxy rules. `*` stands for one segment, and a final `/**` stands for any rest of the path. */

export interface PathPattern {
  /** The segments, without a final `**`. `*` stands for any segment that is not empty. */
  readonly segments: readonly string[]
  /** True if the pattern ends in `/**`, which also matches an empty rest. */
  readonly hasRest: boolean
}

/** The parts of a path that the wildcards of a pattern matched. */
interface Captured {
  readonly segments: readonly string[]
  /** An empty string, or a string that begins with a slash. */
  readonly rest: string
}

/** Splits a path pattern into its segments. The caller must have checked the syntax of the pattern. */
export function parsePattern(path: string): PathPattern {
  const segments = path.slice(1).split('/')
  const hasRest = segments.at(-1) === '**'
  return { segments: hasRest ? segments.slice(0, -1) : segments, hasRest }
}

/** Returns the reason why a text is no path pattern, or undefined if it is one. */
export function whyNoPattern(text: string): string | undefined {
  if (!text.startsWith('/')) return 'it does not begin with a slash'
  const why = whyNotExact(text)
  if (why !== undefined) return why
  if (text.includes('?')) return 'it contains a query'
  const hasPartialWildcard = parsePattern(text).segments.some(segment => segment !== '*' && segment.includes('*'))
  return hasPartialWildcard ? 'it has a * inside a segment' : undefined
}

/**
 * Compares the segments of a path with a pattern, byte for byte. Returns undefined if the path does not match.
 * @param path the path without its leading slash, split at the slashes
 */
export function matchPattern({ segments, hasRest }: PathPattern, path: readonly string[]): Captured | undefined {
  const { length } = segments
  if (hasRest ? path.length < length : path.length !== length) return undefined
  const captured: string[] = []
  for (let index = 0; index < length; index++) {
    const segment = path[index]
    if (segments[index] !== '*') {
      if (segments[index] !== segment) return undefined
    } else if (segment) captured.push(segment)
    else return undefined
  }
  return { segments: captured, rest: path.length === length ? '' : `/${path.slice(length).join('/')}` }
}

// Decoding a longer path in all ways would take long.
const MAX_COMPARED_LENGTH = 4096

/**
 * True if a server may read the path as one that matches a pattern. The comparison ends at the first wildcard of the pattern, so the
 * result is also true for other paths. It is true for every path that is too long to compare.
 */
export function mayMatch(patterns: readonly PathPattern[], path: string): boolean {
  if (path.length > MAX_COMPARED_LENGTH) return true
  const decoded = decodings(path).map(readAsText)
  const readings = [path, ...decoded, ...decoded.map(mergePath)]
  return readings.some(reading => {
    const segments = reading.split('/').filter(segment => segment !== '')
    return patterns.some(pattern => hasPrefixOf(segments, pattern))
  })
}

/**
 * Returns true if a path begins with the segments that precede the first wildcard of a pattern. If the pattern begins
 * with a wildcard, the path must begin with all segments of the pattern.
 */
function hasPrefixOf(path: readonly string[], { segments }: PathPattern): boolean {
  const wildcard = segments.indexOf('*')
  const expected = wildcard > 0 ? segments.slice(0, wildcard) : segments
  return expected.every((segment, index) => segment === path[index] || (segment === '*' && index < path.length))
}

/** Replaces the wildcards of a pattern with the captured parts, and returns the resulting path. */
export function fillPattern({ segments }: PathPattern, captured: Captured): string {
  let next = 0
  const filled = segments.map(segment => (segment === '*' ? captured.segments[next++] : segment))
  const path = filled.map(segment => `/${segment}`).join('')
  return path + captured.rest || '/'
}

/** True if `pattern` matches every path that `other` matches. */
export function coversPattern(pattern: PathPattern, other: PathPattern): boolean {
  const { length } = pattern.segments
  if (pattern.hasRest ? other.segments.length < length : other.hasRest || other.segments.length !== length) {
    return false
  }
  return pattern.segments.every((segment, index) => {
    const otherSegment = other.segments[index]
    return segment === otherSegment || (segment === '*' && otherSegment !== '')
  })
}

/**
 * Returns the reason why a path is ambiguous. Returns undefined if the path is exact, which means that all servers
 * interpret it in the same way. If one server decodes or shortens a path and another does not, an attacker can bypass
 * an allow-list (CVE-2021-21321, CVE-2026-16117). A trailing slash is allowed.
 * @param path the path without its query, exactly as it would be sent
 */
export function whyNotExact(path: string): string | undefined {
  const malformed = whyMalformed(path)
  if (malformed !== undefined) return malformed
  if (hasDotSegment(path)) return 'it has a dot segment'
  if (!path.includes('%')) return undefined
  if (path.length > MAX_COMPARED_LENGTH) return 'it is percent-encoded and too long'
  if (ESCAPED_SEPARATOR.test(path)) return 'it contains an encoded slash, backslash or control character'
  return whyNotExactDecoded(path)
}

/** Returns the reason why the characters of a path are invalid (RFC 3986 section 3.3), or why it has an empty segment. */
export function whyMalformed(path: string): string | undefined {
  if (NOT_VISIBLE_ASCII.test(path)) return 'it contains a character that must be percent-encoded'
  if (path.includes('\\')) return 'it contains a backslash'
  if (path.includes('#')) return 'it contains a fragment'
  if (path.includes('//')) return 'it has an empty segment'
  return BROKEN_ESCAPE.test(path) ? 'it contains a broken percent-encoding' : undefined
}

// The server that receives the path may decode it more than once. So a path is rejected if decoding it leads to another
// list of segments.
function whyNotExactDecoded(path: string): string | undefined {
  const [, ...decoded] = decodings(path)
  const separators = countSlashes(path)
  for (const bytes of decoded) {
    if (isOverlong(bytes)) return 'it contains an overlong UTF-8 sequence'
    const text = readAsText(bytes)
    if (countSlashes(text) > separators) return 'it contains a slash or backslash that is encoded more than once'
    if (hasDotSegment(text)) return 'it has a dot segment'
  }
  return isEncoded(decoded.at(-1) ?? '') ? 'it is percent-encoded more than three times' : undefined
}

const NOT_VISIBLE_ASCII = /[^\x21-\x7e]/
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i
const ESCAPED_SEPARATOR = /%(2f|5c|[01][0-9a-f]|7f)/i
// Sequences that are longer than necessary are invalid UTF-8 (RFC 3629 section 3), but some decoders convert them to a
// dot or a slash.
const OVERLONG = /[\xc0\xc1]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]|\xf8[\x80-\x87]|\xfc[\x80-\x83]/

/** True if bytes, of which each is one character, contain UTF-8 that is longer than necessary. */
export function isOverlong(bytes: string): boolean {
  return OVERLONG.test(bytes)
}

function countSlashes(path: string): number {
  return path.split('/').length - 1
}

/** True if a path has the segment `.` or `..` for any server, also for one that replaces characters which look like slashes. */
export function hasDotSegment(path: string): boolean {
  return MAY_BE_DOT_SEGMENT.test(path) && path.split(LIKE_SLASH).some(isDotSegment)
}

// Slashes and backslashes of other notations, such as the division slash and the set minus, which NFKC keeps. Programs that
// transliterate text to ASCII replace them.
const LIKE_SLASH = /[/\\\u2044\u2215\u2216\u2571\u2572\u27cb\u27cd\u29f5\u29f8\u29f9]/
// Splitting takes longer than finding out that no segment consists of dots and of characters that some servers remove.
const DOTS = /[.\s\p{Cc}\p{Cf}\ufffd]+/u
const MAY_BE_DOT_SEGMENT = new RegExp(`(?:^|${LIKE_SLASH.source})${DOTS.source}(?:$|[;?#]|${LIKE_SLASH.source})`, 'u')

/**
 * True for `.` and `..`, even with white space or invisible characters, which some servers remove. Servers that remove
 * path parameters (RFC 3986 section 3.3) interpret `..;x` as a dot segment. Servers that look for a query after
 * decoding interpret `..?x` as a dot segment.
 */
function isDotSegment(segment: string): boolean {
  const name = segment.replace(/[;?#].*/s, '')
  if (!name.includes('.') || NOT_DOT_OR_INVISIBLE.test(name)) return false
  return name.length <= 2 || NOT_DOT.test(name)
}

const NOT_DOT = /[^.]/
// U+FFFD stands for bytes that are not UTF-8. Some decoders drop such bytes.
const NOT_DOT_OR_INVISIBLE = /[^.\s\p{Cc}\p{Cf}\ufffd]/u
