/**
 * Judges whether a path means the same to everybody who reads it. A path that one server decodes or shortens and another one
 * does not can lead around an allow-list (CVE-2021-21321, CVE-2026-16117).
 */

/**
 * Why a path is not exact, or undefined if it is. The path comes without its query, as the bytes that would be sent.
 * An empty segment is allowed at the end only, where it is a trailing slash.
 */
export function whyNotExact(path: string): string | undefined {
  if (NOT_VISIBLE_ASCII.test(path)) return 'it holds a character that must be percent-encoded'
  if (path.includes('\\')) return 'it holds a backslash'
  if (path.includes('#')) return 'it holds a fragment'
  if (path.includes('//')) return 'it has an empty segment'
  if (path.includes('%')) {
    if (BROKEN_ESCAPE.test(path)) return 'it holds a broken percent-encoding'
    if (ESCAPED_SEPARATOR.test(path)) return 'it holds an encoded slash, backslash or control character'
    if (OVERLONG.test(path)) return 'it holds an overlong UTF-8 sequence'
  }
  if (DOT_SEGMENT.test(path)) return 'it has a dot segment'
  return undefined
}

const NOT_VISIBLE_ASCII = /[^\x21-\x7e]/
const BROKEN_ESCAPE = /%(?![0-9a-f]{2})/i
const ESCAPED_SEPARATOR = /%(2f|5c|[01][0-9a-f]|7f)/i
// C0 and C1 begin no UTF-8 sequence (RFC 3629 section 3), but careless decoders read a dot or a slash from them.
const OVERLONG = /%c[01]/i
// `..;x` is a dot segment to servers that cut path parameters off (RFC 3986 section 3.3), `%252e` to those that decode twice.
const DOT_SEGMENT = /\/(\.|%(25)*2e){1,2}(;|%(25)*3b|\/|$)/i
