/**
 * Finds every way in which an upstream may read a path. In all strings of this file, a character stands for one byte
 * (latin1), because an upstream may decode bytes that are not UTF-8.
 */
import { decode, hasManyMarks, isBeyondAscii, isEncoded, MAX_DECODINGS, textOf } from '../../base/path-readings.js'

/** Something that a server may do with a path. */
export type Operation = (path: string) => string

// Names of real objects have up to ten readings. The limits are for paths that are built to take long, for which no session is needed.
const MAX_READINGS = 100
// The length of all readings together. The paths of real clients need less than 20,000 characters.
const MAX_LENGTH = 20_000

/**
 * Applies the operations and up to three decodings to a path, each any number of times and in any order, and returns all
 * results, the path first. The order matters: some servers remove path parameters before they decode a path, others after
 * that. Returns undefined if a result can be decoded once more, has too many combining marks in a row, or if the results are too
 * many or too long.
 */
export function readingsOf(path: string, operations: readonly Operation[], decodeOnce: Operation = decode) {
  const readings = new Set<string>()
  let encoded = [path]
  let length = 0
  for (let decoded = 0; encoded.length > 0; decoded++) {
    if (decoded > MAX_DECODINGS) return undefined
    const sameDecoding = new Set(decoded === 0 ? encoded : encoded.map(decodeOnce))
    // A set also iterates over the values that are added meanwhile.
    for (const reading of sameDecoding) {
      length += reading.length
      if (length > MAX_LENGTH || sameDecoding.size > MAX_READINGS) return undefined
      if (isBeyondAscii(reading) && hasManyMarks(textOf(reading))) return undefined
      for (const operation of operations) sameDecoding.add(operation(reading))
      readings.add(reading)
    }
    if (readings.size > MAX_READINGS) return undefined
    encoded = [...sameDecoding].filter(isEncoded)
  }
  return readings
}

/**
 * Replaces compatibility characters such as the full-width slash with their ordinary form (Unicode NFKC). Bytes that are
 * not UTF-8 become U+FFFD.
 */
export function normalize(path: string): string {
  return isBeyondAscii(path) ? Buffer.from(textOf(path).normalize('NFKC')).toString('latin1') : path
}

/**
 * Removes the path parameters of each segment (RFC 3986 section 3.3), or the part that some servers interpret as the
 * query or the fragment after they have decoded the path.
 */
export const cuts: readonly Operation[] = [
  path => (path.includes(';') ? path.replace(/;[^/]*/g, '') : path),
  path => cutAt(path, '?'),
  path => cutAt(path, '#')
]

function cutAt(path: string, sign: string): string {
  const end = path.indexOf(sign)
  return end === -1 ? path : path.slice(0, end)
}

/** True if one of the `cuts` would change the path. */
export function canBeCut(path: string): boolean {
  return /[;?#]/.test(path)
}

export function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/')
}

/**
 * Spells a segment as servers compare it that ignore letter case, spaces and dots at the end (as Windows does in file names), and
 * bytes that they cannot decode or show.
 */
export function looseSpelling(segment: string): string {
  const shown = isBeyondAscii(segment) ? textOf(segment).replace(/[\ufffd\p{C}]/gu, '') : segment
  // The upper case first, because it joins more letters, such as s and its long form.
  const folded = shown.toUpperCase().toLowerCase()
  // A regular expression for the end of a string would take quadratic time.
  let end = folded.length
  while (end > 0 && (folded[end - 1] === '.' || (folded[end - 1] as string).trim() === '')) end--
  return folded.slice(0, end).trimStart()
}
