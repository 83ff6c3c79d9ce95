/** Reads the body of a response of the provider as text: its content coding, byte order mark and charset. */
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { errorCode } from '../base/error-code.js'

/** The most bytes of a body, before and after its decompression. */
export const MAX_BODY_BYTES = 1024 * 1024

export class BodyTooLargeError extends Error {}

type Decompress = (body: Buffer) => Promise<Buffer>

const options = { maxOutputLength: MAX_BODY_BYTES }
const gunzip: Decompress = body => promisify(zlib.gunzip)(body, options)
// RFC 9110 section 8.4.1.2: some servers send `deflate` without the header of zlib.
const inflate: Decompress = body =>
  ((body[0] ?? 0) & 15) === 8 ? promisify(zlib.inflate)(body, options) : promisify(zlib.inflateRaw)(body, options)
const codings = new Map<string, Decompress>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', body => promisify(zlib.brotliDecompress)(body, options)]
])

// More codings than any server uses in a row.
const MAX_CODINGS = 3

/**
 * Returns the text of a body. This server asks for no compression, but a server may send it nevertheless (RFC 9110 section 12.5.3).
 * @throws BodyTooLargeError if the body is too large after its decompression
 */
export async function textOf(body: Buffer, headers: IncomingHttpHeaders): Promise<string> {
  const { 'content-encoding': coding, 'content-type': type = '' } = headers
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type)?.[1]
  if (coding === undefined) return decoded(body, charset)
  return decoded(await decompressed(body, coding.toLowerCase().split(',').slice(0, MAX_CODINGS)), charset)
}

/** A body whose coding is unknown or wrong is returned as it is, so that it is no JSON and its status counts. */
async function decompressed(body: Buffer, names: readonly string[]): Promise<Buffer> {
  let result = body
  // The last coding was applied last.
  for (const name of names.toReversed()) {
    const decompress = codings.get(name.trim())
    if (!decompress) continue
    try {
      result = await decompress(result)
    } catch (error) {
      if (errorCode(error) === 'ERR_BUFFER_TOO_LARGE') throw new BodyTooLargeError()
      return body
    }
  }
  return result
}

/**
 * JSON is UTF-8 (RFC 8259 section 8.1), so another charset counts only if the text is no UTF-8. Almost no text in another charset is
 * UTF-8 by chance, except UTF-16. A byte order mark is not part of the text.
 */
function decoded(body: Buffer, charset = 'utf-8'): string {
  const mark = body.subarray(0, 2).toString('hex')
  const utf16 = { fffe: 'utf-16le', feff: 'utf-16be' }[mark] ?? (/^utf-?16/i.test(charset) ? charset : undefined)
  return decode(body, utf16 ?? 'utf-8') ?? decode(body, charset) ?? body.toString()
}

function decode(body: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(body)
  } catch {
    return undefined
  }
}
