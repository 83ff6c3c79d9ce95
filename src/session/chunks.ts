/**
 * Splits one value into several cookies. Browsers silently drop a cookie whose name and value exceed 4,096 bytes (RFC
 * 6265bis section 5.6). The first chunk begins with the number of chunks, so that a missing or outdated chunk is
 * noticed.
 */
import { readCookie } from './cookie-header.js'

const CHUNK_LENGTH = 3800
const MAX_CHUNKS = 4

/** Maximum length of a value that fits into one cookie. */
export const SINGLE_COOKIE_LENGTH = CHUNK_LENGTH - 1
/** Maximum total length of a value in all its cookies. */
export const LONGEST_VALUE = CHUNK_LENGTH * MAX_CHUNKS - 1

/** Returns the names of all cookies that a value may occupy, in the order of the chunks. */
export function chunkNames(name: string): readonly string[] {
  return Array.from({ length: MAX_CHUNKS }, (_, index) => (index === 0 ? name : `${name}.${index}`))
}

/** Splits `value`, which must not be longer than LONGEST_VALUE. */
export function splitIntoChunks(value: string): string[] {
  const count = Math.ceil((value.length + 1) / CHUNK_LENGTH)
  const counted = `${count}${value}`
  return Array.from({ length: count }, (_, index) => counted.slice(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH))
}

/** Joins the chunks. Returns undefined when there are none or when a chunk is missing. */
export function joinChunks(cookieHeader: string, names: readonly string[]): string | undefined {
  const first = readCookie(cookieHeader, names[0] as string)
  if (!first) return undefined
  const count = first.charCodeAt(0) - 48
  if (count === 1) return first.slice(1)
  if (!(count >= 2 && count <= names.length)) return undefined
  const chunks = names.slice(0, count).map(name => readCookie(cookieHeader, name))
  return chunks.includes(undefined) ? undefined : chunks.join('').slice(1)
}
