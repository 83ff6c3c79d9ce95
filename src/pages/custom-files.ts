/** Reads the operator's files for the pages. The message for a problem names the file and says what is allowed. */

import { readFileSync, statSync } from 'node:fs'
import { errorCode } from '../base/error-code.js'
import { whyUnreadable } from '../base/text-file.js'

/** The operator's files cannot be used. Each problem is a sentence about one file, without a full stop. */
export class PageFilesError extends Error {
  override readonly name = 'PageFilesError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/**
 * Creates the error for one file. Each problem completes a sentence that begins with the file, as in `is not a file.`
 */
export function fileError(path: string, ...problems: readonly string[]): PageFilesError {
  return new PageFilesError(problems.map(problem => `the file ${path} ${problem}`))
}

/**
 * Reads a text file in UTF-8 and removes the byte order mark that Windows editors write.
 * @param maxBytes the maximum size
 * @throws {PageFilesError} if the file cannot be read, is too large or is not in UTF-8
 */
export function readText(path: string, maxBytes: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readBytes(path, maxBytes))
  } catch (error) {
    if (errorCode(error) === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw fileError(path, 'is not in UTF-8. Save it in that encoding.')
    throw error
  }
}

// Every page contains the logo, so a large logo would make every error page large.
const MAX_LOGO_BYTES = 32 * 1024
const SVG_NAMESPACE = 'http://www.w3.org/2000/svg'

/**
 * Reads a logo and returns it as a `data:` URL, because the pages load nothing. An SVG image can contain a script, but
 * browsers do not run it in an `img` element.
 * @throws {PageFilesError} if the file cannot be read, is too large, or is not in an image format that every browser
 *   supports
 */
export function readLogo(path: string): string {
  const content = readBytes(path, MAX_LOGO_BYTES)
  const type = imageType(content)
  if (type !== undefined) return `data:${type};base64,${content.toString('base64')}`
  const advice = `Use an SVG image with xmlns="${SVG_NAMESPACE}", or a PNG, JPEG, WebP or GIF image.`
  throw fileError(path, `is not in an image format that every browser supports. ${advice}`)
}

function readBytes(path: string, maxBytes: number): Buffer {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw fileError(path, 'is not a file. Use the path of a file.')
    if (stats.size > maxBytes) throw fileError(path, `has ${stats.size} bytes. At most ${maxBytes} bytes are allowed.`)
    return readFileSync(path)
  } catch (error) {
    if (error instanceof PageFilesError) throw error
    throw fileError(path, `cannot be read, because ${whyUnreadable(error)}. Use the path of a file.`)
  }
}

// The type is determined from the content of the file, because browsers would not show an image if its extension were
// wrong.
function imageType(content: Buffer): string | undefined {
  const start = content.subarray(0, 12).toString('latin1')
  if (start.startsWith('\x89PNG\r\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (start.startsWith('GIF8')) return 'image/gif'
  if (start.startsWith('RIFF') && start.endsWith('WEBP')) return 'image/webp'
  const text = content.toString('utf8')
  const isSvg = /^\uFEFF?\s*<(?:\?xml|!--|!doctype|svg)/i.test(text) && /<svg[\s>]/.test(text)
  return isSvg && text.includes(SVG_NAMESPACE) ? 'image/svg+xml' : undefined
}
