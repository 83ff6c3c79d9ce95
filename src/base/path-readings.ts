/**
 * Finds all paths that other servers may see in one percent-encoded path. A path should be decoded once (RFC 3986
 * section 2.4), but a server behind a gateway may decode it again, and may replace characters that only look like dots
 * or slashes.
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

/** Decodes a path once. In the result, a character stands for one byte (latin1). An invalid escape stays unchanged. */
export function decode(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** True if decoding the path would change it. */
export function isEncoded(path: string): boolean {
  return ESCAPE.test(path)
}

/**
 * Reads the bytes of a decoded path as UTF-8. Replaces compatibility characters such as the full-width dot with their
 * ordinary form (Unicode NFKC), and backslashes with slashes.
 * @param bytes a result of `decodings`
 */
export function readAsText(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8').normalize('NFKC').replaceAll('\\', '/')
}

/**
 * Merges slashes and resolves dot segments, as some servers do. Path parameters (RFC 3986 section 3.3) are ignored for
 * this, so `..;a=b` counts as a dot segment.
 */
export function mergePath(path: string): string {
  const merged: string[] = []
  for (const segment of path.split('/')) {
    const name = segment.replace(/;.*/s, '')
    if (name === '..') merged.pop()
    else if (name !== '.' && name !== '') merged.push(segment)
  }
  return `/${merged.join('/')}`
}
