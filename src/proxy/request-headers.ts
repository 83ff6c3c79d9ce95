/** The headers of a client that an upstream may see: an allow-list, so that cookies and addresses never travel by accident. */

const ALWAYS_SENT = [
  ...['accept', 'accept-encoding', 'accept-language'],
  ...['content-type', 'content-encoding', 'content-disposition', 'content-md5'],
  ...['range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'],
  ...['prefer', 'cache-control', 'user-agent', 'traceparent', 'tracestate', 'x-request-id']
]

/**
 * Names and values in turn, the names in lower case.
 * @param rawHeaders names and values in turn, as Node gives them
 */
export type SelectRequestHeaders = (rawHeaders: readonly string[]) => string[]

/** @param further names from `proxy.requestHeaders` */
export function createRequestHeaders(further: readonly string[]): SelectRequestHeaders {
  const allowed = new Set([...ALWAYS_SENT, ...further.map(name => name.toLowerCase())])

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

// RFC 9110 section 7.6.1: what Connection names is for the next server alone, which is this one.
function namesIn(connection: string, others: ReadonlySet<string> = new Set()): ReadonlySet<string> {
  return new Set([...others, ...connection.split(',').map(name => name.trim().toLowerCase())])
}

function withoutNames(headers: readonly string[], names: ReadonlySet<string>): string[] {
  return headers.filter((_, index) => !names.has(headers[index - (index % 2)] as string))
}
