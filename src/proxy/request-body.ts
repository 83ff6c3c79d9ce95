import { type Readable, Transform, type TransformCallback } from 'node:stream'

/** A request with a body that has not been read yet. Node's IncomingMessage is such a request. */
interface BodySource extends Readable {
  /** True if the whole body has arrived from the client. */
  readonly complete: boolean
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

export interface RequestBody {
  /** The stream for the upstream. If it is destroyed, the request of the client stays open. */
  readonly stream: Readable
  /** Returns true if all received bytes have been forwarded, and the client has not sent the rest of the body yet. */
  isWaitingForClient(): boolean
  /** Stops forwarding. Reads and discards the rest of the body, so that the client can use its connection again. */
  discard(): void
}

/**
 * Creates a stream that forwards the body of a request. undici reads this stream instead of the request, because undici
 * destroys its stream after a failure. Destroying the request would close the connection to the browser without a
 * response.
 * @param maxBytes the maximum length of the body; the stream of a longer body fails with BodyTooLargeError
 * @param onProgress called for each chunk
 */
export function createRequestBody(source: BodySource, maxBytes: number, onProgress: () => void): RequestBody {
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
    if (!source.complete) stream.destroy(new Error('the client disconnected before its whole body had arrived'))
  }
  source.once('close', fail)
  stream.once('close', () => source.off('close', fail))
  // undici handles the errors of the stream. This listener prevents an uncaught exception if undici does not read the
  // stream.
  stream.on('error', () => {})
  source.pipe(stream)
  return {
    stream,
    isWaitingForClient: () => !source.complete && stream.readableLength === 0,
    discard() {
      source.unpipe(stream)
      stream.destroy()
      source.resume()
    }
  }
}
