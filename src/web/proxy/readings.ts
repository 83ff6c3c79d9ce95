/**
 * Finds every way in which an upstream may read a path. In all strings of this file, a character stands for one byte
 * (latin1), because an upstream may decode bytes that are not UTF-8.
 */
import { decode, isEncoded, MAX_DECODINGS } from '../../base/path-readings.js'

/** Something that a server may do with a path. */
export type Operation = (path: string) => string

// Names of real objects have up to ten readings. The limit is for paths that are built to have many.
const MAX_READINGS = 100
// The length of all readings together. Normalizing a long run of combining marks takes quadratic time, and no session is needed to
// send such a path. The paths of real clients need less than 20,000 characters.
const MAX_LENGTH = 100_000

/**
 * Applies the operations and up to three decodings to a path, each any number of times and in any order, and returns all
 * results, the path first. The order matters: some servers remove path parameters before they decode a path, others after
 * that. Returns undefined if a result can be decoded once more, or if there are too many results.
 */
export function readingsOf(path: string, operations: readonly Operation[], decodeOnce: Operation = decode) {
  const readings = new Set<string>()
  let encoded = [path]
  for (let decoded = 0; encoded.length > 0; decoded++) {
    if (decoded > MAX_DECODINGS) return undefined
    const sameDecoding = new Set(decoded === 0 ? encoded : encoded.map(decodeOnce))
    // A set also iterates over the values that are added meanwhile.
    for (const reading of sameDecoding) {
      for (const operation of operations) sameDecoding.add(operation(reading))
      if (sameDecoding.size > MAX_READINGS || sameDecoding.size * path.length > MAX_LENGTH) return undefined
      readings.add(reading)
    }
    if (readings.size > MAX_READINGS || readings.size * path.length > MAX_LENGTH) return undefined
    encoded = [...sameDecoding].filter(isEncoded)
  }
  return readings
}

/**
 * Replaces compatibility characters such as the full-width slash with their ordinary form (Unicode NFKC). Bytes that are
 * not UTF-8 become U+FFFD.
 */
export function normalize(path: string): string {
  return NOT_ASCII.test(path) ? bytesOf(textOf(path).normalize('NFKC')) : path
}

const NOT_ASCII = /[^\0-\x7f]/

/**
 * Removes the path parameters of each segment (RFC 3986 section 3.3), or the part that some servers interpret as the
 * query or the fragment after they have decoded the path.
 */
export const cuts: readonly Operation[] = [
  path => path.replace(/;[^/]*/g, ''),
  path => path.replace(/\?.*/s, ''),
  path => path.replace(/#.*/s, '')
]

/** True if one of the `cuts` would change the path. */
export function canBeCut(path: string): boolean {
  return /[;?#]/.test(path)
}

export function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, '/')
}

/** Reads the bytes of a path as UTF-8. */
export function textOf(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8')
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
