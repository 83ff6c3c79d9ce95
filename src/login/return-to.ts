/**
 * Where a browser may be sent after login: a path on this site, and nothing that any browser could read as more
 * (RFC 9700 section 4.11.1). Doubt means the start page.
 */
const LONGEST = 2048
// Printable ASCII without the backslash, which browsers read as a slash; a space or a control character is dropped by them.
// No quotation mark either: browsers write it %22, and JSON would double it, so that a long path made a state too long to come back.
const PLAIN_PATH = /^\/[!#-[\]-~]*$/
// What a proxy or a page might decode once more into a slash, a backslash, a dot or a control character.
const DOUBTFUL_ESCAPE = /%(?:2f|5c|2e|25|7f|[01][0-9a-f])/i

/** `value` when it is such a path, else `/`. */
export function safeReturnTo(value: string | undefined): string {
  if (value === undefined || value.length > LONGEST || !PLAIN_PATH.test(value)) return '/'
  const path = value.split(/[?#]/, 1)[0] as string
  if (path.includes('//') || DOUBTFUL_ESCAPE.test(path) || path.split('/').includes('..')) return '/'
  // The last word has the parser that browsers share (WHATWG URL): it must stay on the made-up host, unchanged.
  const url = URL.canParse(value, 'http://host.invalid') ? new URL(value, 'http://host.invalid') : undefined
  return url?.origin === 'http://host.invalid' && url.pathname === path ? value : '/'
}
