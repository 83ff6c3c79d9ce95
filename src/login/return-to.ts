/**
 * Checks the path to which a browser is redirected after login. It must be a path on this site that no browser could read as
 * the address of another site (RFC 9700 section 4.11.1). An ambiguous value is replaced by the start page.
 */
import { AUTH_PATH } from '../config/routes.js'

const MAX_LENGTH = 2048
// Printable ASCII without the backslash, which browsers read as a slash. Browsers remove spaces and control characters,
// and they encode a quotation mark as %22. JSON escapes that mark with a second character, which could make the state
// too long for the callback.
const PLAIN_PATH = /^\/[!#-[\]-~]*$/
// A proxy or a page may decode these escapes again, into a slash, a backslash, a dot or a control character.
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|2e|25|7f|[01][0-9a-f])/i
// Our own routes are excluded, because the logout route would end the new session and the login route would start another
// login. The pattern allows a path in front of them, because a proxy may remove a base path.
const AUTH_ROUTE = new RegExp(`${AUTH_PATH}(?:/|$)`, 'i')

/** Returns `value` if it is a safe path and not one of our own routes. Otherwise returns `/`. */
export function safeReturnTo(value: string | undefined): string {
  if (value === undefined || value.length > MAX_LENGTH || !PLAIN_PATH.test(value)) return '/'
  const path = value.split(/[?#]/, 1)[0] as string
  if (path.includes('//') || AMBIGUOUS_ESCAPE.test(path) || path.split('/').includes('..')) return '/'
  if (AUTH_ROUTE.test(decodeAscii(path))) return '/'
  // The final check uses the WHATWG URL parser, which browsers use too. The parser must change neither host nor path.
  const url = URL.canParse(value, 'http://host.invalid') ? new URL(value, 'http://host.invalid') : undefined
  return url?.origin === 'http://host.invalid' && url.pathname === path ? value : '/'
}

function decodeAscii(path: string): string {
  return path.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
