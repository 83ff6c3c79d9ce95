/**
 * Finds all paths that other servers may see in one percent-encoded path. A path should be decoded once (RFC 3986
 * section 2.4), but a server behind a gateway may decode it again, and may replace characters that only look like dots
 * or slashes. Everybody can send a path of many kilobytes, so all functions take linear time.
 */

export const MAX_DECODINGS = 3
const ESCAPE = /%[0-9a-f]{2}/i

/**
 * Decodes a path up to three times. Returns the given path first, and then the result of each decoding. In every
 * result, a character stands for one byte (latin1). An invalid escape stays unchanged.
 * @param path the path without its query, in ASCII
 */
export function decodings(path: string): readonly string[] {
  const results = [path]
  for (let last = path; results.length <= MAX_DECODINGS && isEncoded(last); ) {
    last = decode(last)
    results.push(last)
  }
  return results
}

/** Decodes a path once. In path and result, a character stands for one byte (latin1). An invalid escape stays unchanged. */
export function decode(path: string): string {
  const start = path.indexOf('%')
  if (start === -1) return path
  // A regular expression with a function for each escape would take ten times as long.
  const bytes = Buffer.from(path, 'latin1')
  let length = start
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const decoded = byte === PERCENT ? hexValue(bytes[at + 1]) * 16 + hexValue(bytes[at + 2]) : Number.NaN
    bytes[length++] = Number.isNaN(decoded) ? byte : decoded
    if (!Number.isNaN(decoded)) at += 2
  }
  return bytes.toString('latin1', 0, length)
}

const PERCENT = 0x25

function hexValue(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : Number.NaN
}

/** True if decoding the path would change it. */
export function isEncoded(path: string): boolean {
  return ESCAPE.test(path)
}

/** Reads the bytes of a path as UTF-8. Bytes that are not UTF-8 become U+FFFD. */
export function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/**
 * Reads the bytes of a decoded path as UTF-8. Replaces compatibility characters such as the full-width dot with their
 * ordinary form (Unicode NFKC), and backslashes with slashes. A segment with too many combining marks is not normalized.
 * @param bytes a result of `decodings`
 */
export function readAsText(bytes: string): string {
  const text = NOT_ASCII.test(bytes) ? textOf(bytes) : bytes
  const normalized = hasManyMarks(text) ? text.split('/').map(normalizedSegment).join('/') : text.normalize('NFKC')
  return normalized.replaceAll('\\', '/')
}

function normalizedSegment(segment: string): string {
  return hasManyMarks(segment) ? segment : segment.normalize('NFKC')
}

/** True if a string has a character that is not in ASCII. */
export function isBeyondAscii(text: string): boolean {
  return NOT_ASCII.test(text)
}

const NOT_ASCII = /[^\0-\x7f]/

/**
 * True if a text has more than 30 combining marks in a row. Normalizing them takes quadratic time, and no language needs so many
 * (Unicode Standard Annex #15, Stream-Safe Text Format). NFKC makes marks of the letters U+FF9E and U+FF9F.
 */
export function hasManyMarks(text: string): boolean {
  return NOT_ASCII.test(text) && MANY_MARKS.test(text)
}

// The lookbehind makes the search linear, because it begins only once in each row of marks.
const MANY_MARKS = /(?<![\p{M}\uff9e\uff9f])[\p{M}\uff9e\uff9f]{31}/u

/**
 * Merges slashes and resolves dot segments, as some servers do. Path parameters (RFC 3986 section 3.3) are ignored for
 * this, so `..;a=b` counts as a dot segment.
 */
export function mergePath(path: string): string {
  const merged: string[] = []
  for (const segment of path.replace(REPEATED_SLASHES, '/').split('/')) {
    if (/^\.\.(;|$)/.test(segment)) merged.pop()
    else if (segment !== '' && !/^\.(;|$)/.test(segment)) merged.push(segment)
  }
  return `/${merged.join('/')}`
}

const REPEATED_SLASHES = /\/+(\.\/+)*/g
