import { type Readable, Transform, type TransformCallback } from 'node:stream'

/** A request whose body is still to be read, as Node's IncomingMessage is. */
export interface BodySource extends Readable {
  /** True once the whole body has arrived. */
  readonly complete: boolean
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

export interface RequestBody {
  /** What goes to the upstream. It may be destroyed without harm to the source. */
  readonly stream: Readable
  /** True while the next bytes have to come from the client. */
  isWaitingForClient(): boolean
  /** Stops passing the body on and throws the rest of it away, so that the connection of the client stays usable. */
  discard(): void
}

/**
 * Passes a body on piece by piece. The source is not handed out itself, because whoever destroys it destroys the connection on
 * which the client still expects an answer.
 * @param maxBytes the stream fails with BodyTooLargeError beyond this length
 * @param onProgress called for each piece
 */
export function createRequestBody(source: BodySource, maxBytes: number, onProgress: () => void): RequestBody {
  let passedBytes = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      passedBytes += chunk.length
      onProgress()
      if (passedBytes > maxBytes) done(new BodyTooLargeError(`the body is longer than ${maxBytes} bytes`))
      else done(null, chunk)
    }
  })
  const fail = () => {
    if (!source.complete) stream.destroy(new Error('the client left before its whole body had arrived'))
  }
  source.once('close', fail)
  stream.once('close', () => source.off('close', fail))
  // The reader of the stream reports its failures. Without a reader there is nobody to tell.
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
