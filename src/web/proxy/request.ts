/**
 * Selects the request headers for an upstream, and limits and forwards the request body. Only headers on a list are
 * sent. Cookies and headers with the IP address of the client are not on the list.
 */
import type { IncomingMessage } from 'node:http'
import { type Readable, Transform, type TransformCallback } from 'node:stream'

const ALWAYS_SENT = [
  ...['accept', 'accept-encoding', 'accept-language'],
  ...['content-type', 'content-encoding', 'content-disposition', 'content-md5'],
  ...['content-range', 'range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'],
  ...['prefer', 'cache-control', 'user-agent', 'traceparent', 'tracestate']
]

// The headers of the APIs of Autodesk Platform Services, such as x-ads-force and x-ads-derivative-format.
const ALWAYS_SENT_PREFIX = 'x-ads-'
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
      if (allowed.has(name) || name.startsWith(ALWAYS_SENT_PREFIX)) selected.push(name, value)
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

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

export type RequestBody = ReturnType<typeof createRequestBody>

/**
 * Creates a stream that forwards the body of a request. undici reads this stream instead of the request, because after
 * a failure, undici destroys the stream that it reads. Destroying the request would close the connection to the browser
 * without a response.
 * @param source a request whose body has not been read yet. Its property `complete` is true when the whole body has
 *   arrived from the client.
 * @param maxBytes the maximum length of the body; the stream of a longer body fails with BodyTooLargeError
 * @param onProgress called for each chunk
 */
export function createRequestBody(
  source: Readable & Pick<IncomingMessage, 'complete'>,
  maxBytes: number,
  onProgress: () => void
) {
  let forwardedBytes = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      forwardedBytes += chunk.length
      onProgress()
      if (forwardedBytes > maxBytes) done(new BodyTooLargeError(`the body is longer than ${maxBytes} bytes`))
      else done(null, chunk)
    }
  })
  const fail = () => {
    if (!source.complete) stream.destroy(new Error('the client disconnected before the whole request body had arrived'))
  }
  source.once('close', fail)
  stream.once('close', () => source.off('close', fail))
  // undici handles the errors of the stream. While undici does not read the stream, this listener prevents an uncaught
  // exception.
  stream.on('error', () => {})
  source.pipe(stream)
  return {
    /** The stream for the upstream. If it is destroyed, the request of the client stays open. */
    stream,
    /**
     * Returns true if all received bytes were forwarded, but the client has not sent the rest of the body yet. In that
     * case, the upstream waits for the client, so the time limit does not apply.
     */
    isWaitingForClient: () => !source.complete && stream.readableLength === 0,
    /** Stops forwarding. Reads and discards the rest of the body, so that the client can use its connection again. */
    discard() {
      source.unpipe(stream)
      stream.destroy()
      source.resume()
    }
  }
}
