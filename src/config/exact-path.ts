/**
 * Checks that all servers interpret a path in the same way. If one server decodes or shortens a path and another does not,
 * an attacker can get around an allow-list (CVE-2021-21321, CVE-2026-16117).
 */

/**
 * Returns the reason why a path is ambiguous, or undefined if it is exact. A trailing slash is allowed.
 * @param path the path without its query, exactly as it would be sent
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
// No UTF-8 sequence begins with C0 or C1 (RFC 3629 section 3), but some decoders read a dot or a slash from them.
const OVERLONG = /%c[01]/i
// Servers that remove path parameters (RFC 3986 section 3.3) read `..;x` as a dot segment. Servers that decode twice read
// `%252e` as a dot.
const DOT_SEGMENT = /\/(\.|%(25)*2e){1,2}(;|%(25)*3b|\/|$)/i
