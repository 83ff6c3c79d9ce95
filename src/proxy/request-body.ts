import { type Readable, Transform, type TransformCallback } from 'node:stream'

/** A request whose body has not been read yet, such as Node's IncomingMessage. */
export interface BodySource extends Readable {
  /** True if the whole body has arrived. */
  readonly complete: boolean
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

export interface RequestBody {
  /** The body for the upstream. Destroying it does not affect the source. */
  readonly stream: Readable
  /** True if the upstream has received everything that the client has sent so far, but the body is not complete. */
  isWaitingForClient(): boolean
  /** Stops forwarding and discards the rest of the body, so that the connection of the client stays usable. */
  discard(): void
}

/**
 * Forwards a body chunk by chunk. The upstream client gets a separate stream. If it destroyed the source, the connection to the
 * browser would close without a response.
 * @param maxBytes the stream fails with BodyTooLargeError if the body is longer
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
  // The reader of the stream handles its errors. This listener prevents an uncaught error if there is no reader.
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
