/**
 * Checks that all servers interpret a path in the same way. If one server decodes or shortens a path and another does not,
 * an attacker can get around an allow-list (CVE-2021-21321, CVE-2026-16117).
 */
import { decodings, isEncoded, readAsText } from '../support/path-readings.js'

/**
 * Returns the reason why a path is ambiguous, or undefined if it is exact. A trailing slash is allowed.
 * @param path the path without its query, exactly as it would be sent
 */
export function whyNotExact(path: string): string | undefined {
  if (NOT_VISIBLE_ASCII.test(path)) return 'it holds a character that must be percent-encoded'
  if (path.includes('\\')) return 'it holds a backslash'
  if (path.includes('#')) return 'it holds a fragment'
  if (path.includes('//')) return 'it has an empty segment'
  if (hasDotSegment(path)) return 'it has a dot segment'
  if (!path.includes('%')) return undefined
  if (BROKEN_ESCAPE.test(path)) return 'it holds a broken percent-encoding'
  if (ESCAPED_SEPARATOR.test(path)) return 'it holds an encoded slash, backslash or control character'
  return whyNotExactDecoded(path)
}

// The server that receives the path may decode it more than once. No decoding may lead to another list of segments.
function whyNotExactDecoded(path: string): string | undefined {
  const [, ...decoded] = decodings(path)
  const separators = countSlashes(path)
  for (const bytes of decoded) {
    if (OVERLONG.test(bytes)) return 'it holds an overlong UTF-8 sequence'
    const text = readAsText(bytes)
    if (countSlashes(text) > separators) return 'it holds a slash or backslash that is encoded more than once'
    if (hasDotSegment(text)) return 'it has a dot segment'
  }
  return isEncoded(decoded.at(-1) ?? '') ? 'it is percent-encoded more than three times' : undefined
}

const NOT_VISIBLE_ASCII = /[^\x21-\x7e]/
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i
const ESCAPED_SEPARATOR = /%(2f|5c|[01][0-9a-f]|7f)/i
// Sequences that are longer than necessary are invalid UTF-8 (RFC 3629 section 3), but some decoders read a dot or a slash
// from them.
const OVERLONG = /[\xc0\xc1]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]|\xf8[\x80-\x87]|\xfc[\x80-\x83]/

function countSlashes(text: string): number {
  return text.split('/').length - 1
}

function hasDotSegment(path: string): boolean {
  return path.includes('.') && path.split('/').some(isDotSegment)
}

/**
 * True for `.` and `..`, also with white space or invisible characters, which some servers remove. Servers that remove path
 * parameters (RFC 3986 section 3.3) read `..;x` as a dot segment, and servers that look for a query after decoding read
 * `..?x` as one.
 */
function isDotSegment(segment: string): boolean {
  const name = segment.replace(/[;?#].*/s, '')
  if (!name.includes('.') || NOT_DOT_OR_INVISIBLE.test(name)) return false
  return name.length <= 2 || NOT_DOT.test(name)
}

const NOT_DOT = /[^.]/
const NOT_DOT_OR_INVISIBLE = /[^.\s\p{Cc}\p{Cf}]/u
