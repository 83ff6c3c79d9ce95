/**
 * Selects the request headers for an upstream. Only headers on a list are sent. Cookies and headers with the IP address of the
 * client are not on the list.
 */

const ALWAYS_SENT = [
  ...['accept', 'accept-encoding', 'accept-language'],
  ...['content-type', 'content-encoding', 'content-disposition', 'content-md5'],
  ...['content-range', 'range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'],
  ...['prefer', 'cache-control', 'user-agent', 'traceparent', 'tracestate'],
  // A reconnecting EventSource, requests that may be repeated, and resumable uploads.
  ...['last-event-id', 'idempotency-key', 'tus-resumable']
]

// The headers of the APIs of Autodesk Platform Services, such as x-ads-force, and those of resumable uploads.
const ALWAYS_SENT_PREFIXES = /^(x-ads-|upload-)/
// This server sets these headers itself, so they are not missing.
const REPLACED = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'via', 'x-request-id'])

/** Returns the names of the request headers that were not selected, in lower case and without duplicates. */
export function namesNotSelected(rawHeaders: readonly string[], selected: readonly string[]): string[] {
  const sent = new Set(selected.filter((_, index) => index % 2 === 0))
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
  return [...new Set(names)].filter(name => !sent.has(name) && !REPLACED.has(name))
}

/** @param additional the names of additional headers to send, from the setting `apiProxy.requestHeaders` */
export function createRequestHeaders(additional: readonly string[]) {
  const allowed = new Set([...ALWAYS_SENT, ...additional.map(name => name.toLowerCase())])

  /**
   * Returns the selected headers: each name, in lower case, is followed by its value.
   * @param rawHeaders Node's `rawHeaders`, in which each name is followed by its value
   */
  return function selectRequestHeaders(rawHeaders: readonly string[]): string[] {
    const selected: string[] = []
    let hopByHop: ReadonlySet<string> | undefined
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = (rawHeaders[index] as string).toLowerCase()
      const value = rawHeaders[index + 1] as string
      if (allowed.has(name) || ALWAYS_SENT_PREFIXES.test(name)) selected.push(name, value)
      else if (name === 'connection' && !/^(keep-alive|close)$/i.test(value)) hopByHop = namesIn(value, hopByHop)
    }
    return hopByHop ? withoutNames(selected, hopByHop) : selected
  }
}

// A header that the Connection header lists is meant only for this server and must not be forwarded (RFC 9110 section
// 7.6.1).
function namesIn(connection: string, others: ReadonlySet<string> = new Set()): ReadonlySet<string> {
  return new Set([...others, ...connection.split(',').map(name => name.trim().toLowerCase())])
}

/** Removes the headers with these names from a list in which each name, in lower case, is followed by its value. */
export function withoutNames(headers: readonly string[], names: ReadonlySet<string>): string[] {
  return headers.filter((_, index) => !names.has(headers[index - (index % 2)] as string))
}
