import { fileError } from './errors.js'
import { readBytes } from './read.js'

// Every page contains the logo, so a large logo would make every error response large.
const MAX_BYTES = 32 * 1024
const SVG_NAMESPACE = 'http://www.w3.org/2000/svg'

/**
 * Reads a logo and returns it as a `data:` URL, because the pages load nothing. An SVG image can contain a script, but
 * browsers do not run it in an element `img`.
 * @throws {PageFilesError} if the file cannot be read, is too large, or is not an image that browsers show
 */
export function readLogo(path: string): string {
  const content = readBytes(path, MAX_BYTES)
  const type = typeOf(content)
  if (type !== undefined) return `data:${type};base64,${content.toString('base64')}`
  const allowed = `allowed: an SVG image with xmlns="${SVG_NAMESPACE}", or a PNG, JPEG, WebP or GIF image`
  throw fileError(path, `is not an image that every browser shows; ${allowed}`)
}

// The content decides, because a wrong extension would lead to an image that browsers do not show.
function typeOf(content: Buffer): string | undefined {
  const start = content.subarray(0, 12).toString('latin1')
  if (start.startsWith('\x89PNG\r\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (start.startsWith('GIF8')) return 'image/gif'
  if (start.startsWith('RIFF') && start.endsWith('WEBP')) return 'image/webp'
  const text = content.toString('utf8')
  const isSvg = /^\uFEFF?\s*<(?:\?xml|!--|!doctype|svg)/i.test(text) && /<svg[\s>]/.test(text)
  return isSvg && text.includes(SVG_NAMESPACE) ? 'image/svg+xml' : undefined
}
