/**
 * Selects the request headers for an upstream. Only headers on a list are sent. The list has no headers with cookies or
 * with the address of the client.
 */

const ALWAYS_SENT = [
  ...['accept', 'accept-encoding', 'accept-language'],
  ...['content-type', 'content-encoding', 'content-disposition', 'content-md5'],
  ...['range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'],
  ...['prefer', 'cache-control', 'user-agent', 'traceparent', 'tracestate', 'x-request-id']
]

/**
 * Returns the selected headers. Names and values alternate, and the names are in lower case.
 * @param rawHeaders Node's `rawHeaders`, in which names and values alternate
 */
type SelectRequestHeaders = (rawHeaders: readonly string[]) => string[]

/** @param additional the names of more headers to send, from the setting `proxy.requestHeaders` */
export function createRequestHeaders(additional: readonly string[]): SelectRequestHeaders {
  const allowed = new Set([...ALWAYS_SENT, ...additional.map(name => name.toLowerCase())])

  return function selectRequestHeaders(rawHeaders) {
    const selected: string[] = []
    let hopByHop: ReadonlySet<string> | undefined
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = (rawHeaders[index] as string).toLowerCase()
      const value = rawHeaders[index + 1] as string
      if (allowed.has(name)) selected.push(name, value)
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

function withoutNames(headers: readonly string[], names: ReadonlySet<string>): string[] {
  return headers.filter((_, index) => !names.has(headers[index - (index % 2)] as string))
}
