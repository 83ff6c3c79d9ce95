import type { IncomingMessage } from 'node:http'

/**
 * Reads the body of a request. Resolves with undefined as soon as it is longer than `maxBytes`. The rest of a long body is read and
 * ignored, so that the client gets the response. Rejects if the body is incomplete.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    function add(chunk: Buffer): void {
      length += chunk.length
      chunks.push(chunk)
      if (length <= maxBytes) return
      resolve(undefined)
      request.off('data', add).resume()
    }
    request.on('data', add)
    request.once('end', () => resolve(Buffer.concat(chunks).toString()))
    for (const event of ['error', 'close']) request.once(event, () => reject(new Error('the body is not complete')))
  })
}
