/** Limits the length of a request body, and forwards the body to an upstream. */
import type { IncomingMessage } from 'node:http'
import { type Readable, Transform, type TransformCallback } from 'node:stream'

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
