/**
 * Checks the path to which a browser is redirected after a login or a logout. No browser or proxy may interpret it as
 * the address of another site (RFC 9700 section 4.11.1). A value that is not safe is replaced by the start page.
 */
import { AUTH_PATH } from '../config/routes.js'

const MAX_LENGTH = 2048
// Allows printable ASCII characters except the space, the backslash and the quotation mark. Browsers interpret a
// backslash as a slash, and they may remove spaces. The path is stored in the `state` parameter as JSON. A quotation
// mark needs two characters in JSON, so many of them could make the `state` too long.
const PLAIN_PATH = /^\/[!#-[\]-~]*$/
// The percent-encodings of a slash, a backslash, a dot, a percent sign and control characters. A proxy or a page may
// decode them once more, and the path could then lead to another site.
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|2e|25|7f|[01][0-9a-f])/i
// The routes of this server are not allowed. For example, the logout route would end the new session. The pattern also
// matches a route with another path in front, because a reverse proxy may add a public path that this server does not
// see.
const AUTH_ROUTE = new RegExp(`${AUTH_PATH}(?:/|$)`, 'i')

/** Returns `value` if it is a safe path and not a route of this server. Otherwise returns `/`. */
export function safeReturnTo(value: string | undefined): string {
  if (value === undefined || value.length > MAX_LENGTH || !PLAIN_PATH.test(value)) return '/'
  const path = value.split(/[?#]/, 1)[0] as string
  if (path.includes('//') || AMBIGUOUS_ESCAPE.test(path) || path.split('/').includes('..')) return '/'
  if (AUTH_ROUTE.test(decodeAscii(path))) return '/'
  // The final check uses the WHATWG URL parser, because browsers use the same algorithm. It must find the same path and
  // no other host.
  const url = URL.canParse(value, 'http://host.invalid') ? new URL(value, 'http://host.invalid') : undefined
  return url?.origin === 'http://host.invalid' && url.pathname === path ? value : '/'
}

function decodeAscii(path: string): string {
  return path.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
