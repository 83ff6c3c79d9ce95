/**
 * The rule for return paths, the pages to which a browser returns after a login or a logout. Pages and links of other
 * sites can choose this path, so it must not lead to another site (RFC 9700 section 4.11.1). It must not lead to a route
 * of this server either: the logout route, for example, would terminate the new session. All other paths are returned
 * unchanged, because a changed path opens a different page.
 */

import { decodings } from '../base/path-readings.js'
import { AUTH_PATH } from '../config/types/urls.js'

// With this limit, the `state`, which contains the path as JSON, is never longer than the callback accepts (MAX_LENGTH
// in callback.ts).
const MAX_JSON_LENGTH = 2048
// Characters that a URL cannot contain. The quotation mark is included because browsers encode it, too.
const NOT_IN_URLS = /[^\x21\x23-\x7e]+/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: Browsers remove some of these characters from a URL.
const CONTROL_CHARACTER = /[\x00-\x1f\x7f]/
const LONE_SURROGATE = /[\ud800-\udfff]/u
const HOST_START = /^[/\\]{2}/
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i
const AUTH_SEGMENTS = `${AUTH_PATH}/`

/**
 * Returns `value` if it is a safe path of this origin, with its query and fragment. Spaces, quotation marks and
 * characters beyond ASCII are percent-encoded. If it is too long, drops its fragment, and then its query. Returns `/` for any other
 * value.
 * @param onChange is called if the result is another path
 */
export function safeReturnTo(value: string, onChange = () => {}): string {
  const isText = !CONTROL_CHARACTER.test(value) && !LONE_SURROGATE.test(value)
  const whole = isText ? value.replace(NOT_IN_URLS, text => encodeURIComponent(text)) : ''
  const [path = ''] = whole.split(/[?#]/, 1)
  const [withoutFragment = ''] = whole.split('#', 1)
  const encoded = [whole, withoutFragment, path].find(isShort)
  const isSafe =
    encoded !== undefined &&
    path.startsWith('/') &&
    !path.includes('\\') &&
    // A proxy or a page may decode the path once more.
    decodings(path).every(isSafePath) &&
    isSameOrigin(encoded)
  const safe = isSafe ? encoded : '/'
  if (safe !== whole) onChange()
  return safe
}

function isShort(encoded: string): boolean {
  return JSON.stringify(encoded).length - '""'.length <= MAX_JSON_LENGTH
}

/** @param path a path in which a character beyond ASCII stands for one byte */
function isSafePath(path: string): boolean {
  if (HOST_START.test(path) || CONTROL_CHARACTER.test(path)) return false
  // Browsers treat a backslash as a slash. Some servers ignore path parameters (RFC 3986 section 3.3) and empty
  // segments. URL parsers remove spaces at the end. A decoded path may contain the start of a query or a fragment.
  const segments = path
    .replace(/ +$/, '')
    .split(/[/\\]/)
    .map(segment => segment.replace(/[;?#].*/s, ''))
  if (segments.some(segment => DOT_SEGMENT.test(segment))) return false
  const merged = `/${segments.filter(segment => segment !== '').join('/')}/`
  // A reverse proxy may add a public base path, so the segments of the routes may come anywhere.
  return !merged.toLowerCase().includes(AUTH_SEGMENTS)
}

// Browsers use the same algorithm as this parser.
function isSameOrigin(value: string): boolean {
  const origin = 'http://host.invalid'
  return URL.canParse(value, origin) && new URL(value, origin).origin === origin
}
