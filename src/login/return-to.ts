/**
 * Where a browser may be sent after login: a path on this site that no browser could read as the address of another site
 * (RFC 9700 section 4.11.1). Any doubtful value becomes the start page.
 */
const MAX_LENGTH = 2048
// Printable ASCII without the backslash, which browsers read as a slash. Browsers drop spaces and control characters, and
// they write a quotation mark as %22. JSON doubles that mark, which could make the state too long for the callback.
const PLAIN_PATH = /^\/[!#-[\]-~]*$/
// A proxy or a page may decode these once more into a slash, a backslash, a dot or a control character.
const DOUBTFUL_ESCAPE = /%(?:2f|5c|2e|25|7f|[01][0-9a-f])/i
// Our own routes: after a login, `/api/auth/logout` would end it and `/api/auth/login` would start the next. A folder may
// stand in front of them, because a proxy may remove a base path.
const AUTH_ROUTE = /\/api\/auth(?:\/|$)/i

/** Returns `value` when it is such a path and none of our own routes, otherwise `/`. */
export function safeReturnTo(value: string | undefined): string {
  if (value === undefined || value.length > MAX_LENGTH || !PLAIN_PATH.test(value)) return '/'
  const path = value.split(/[?#]/, 1)[0] as string
  if (path.includes('//') || DOUBTFUL_ESCAPE.test(path) || path.split('/').includes('..')) return '/'
  if (AUTH_ROUTE.test(decodeAscii(path))) return '/'
  // The final check is by the WHATWG URL parser, the one browsers use: the path must stay on the invented host, unchanged.
  const url = URL.canParse(value, 'http://host.invalid') ? new URL(value, 'http://host.invalid') : undefined
  return url?.origin === 'http://host.invalid' && url.pathname === path ? value : '/'
}

function decodeAscii(path: string): string {
  return path.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
