/**
 * One value over several cookies: browsers drop, without a word, a cookie whose name and value pass 4,096 bytes
 * (RFC 6265bis section 5.6). The first chunk begins with their number, so that a missing or left-over one is noticed.
 */
import { readCookie } from './cookie-header.js'

const CHUNK_LENGTH = 3800
const MOST_CHUNKS = 4

/** Characters of value that fit one cookie, and all of them together. */
export const SINGLE_COOKIE_LENGTH = CHUNK_LENGTH - 1
export const LONGEST_VALUE = CHUNK_LENGTH * MOST_CHUNKS - 1

/** The cookie names a value may occupy, first chunk first. */
export function chunkNames(name: string): readonly string[] {
  return Array.from({ length: MOST_CHUNKS }, (_, index) => (index === 0 ? name : `${name}.${index}`))
}

/** The chunks of `value`, which must not be longer than LONGEST_VALUE. */
export function splitIntoChunks(value: string): string[] {
  const count = Math.ceil((value.length + 1) / CHUNK_LENGTH)
  const counted = `${count}${value}`
  return Array.from({ length: count }, (_, index) => counted.slice(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH))
}

/** The value again, or undefined when there is none or a chunk is missing. */
export function joinChunks(cookieHeader: string, names: readonly string[]): string | undefined {
  const first = readCookie(cookieHeader, names[0] as string)
  if (!first) return undefined
  const count = first.charCodeAt(0) - 48
  if (count === 1) return first.slice(1)
  if (!(count >= 2 && count <= names.length)) return undefined
  const chunks = names.slice(0, count).map(name => readCookie(cookieHeader, name))
  return chunks.includes(undefined) ? undefined : chunks.join('').slice(1)
}
