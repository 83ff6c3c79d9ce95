/**
 * Splits a long value into several cookies, because browsers ignore a cookie whose name and value together have more than 4,096
 * bytes (RFC 6265bis section 5.6). The first chunk begins with the number of chunks. So a missing chunk is detected, and a cookie
 * that is left over from a longer value is ignored.
 */
const CHUNK_LENGTH = 3800
const MAX_CHUNKS = 4

/** The maximum length of a value that fits into one cookie. */
export const SINGLE_COOKIE_LENGTH = CHUNK_LENGTH - 1
/** The maximum length of a value that fits into all cookies together. */
export const MAX_VALUE_LENGTH = CHUNK_LENGTH * MAX_CHUNKS - 1

/** Returns the names of all cookies that a value may occupy, in the order of the chunks. */
export function chunkNames(name: string): readonly string[] {
  return Array.from({ length: MAX_CHUNKS }, (_, index) => (index === 0 ? name : `${name}.${index}`))
}

/** Splits `value`, which must not be longer than MAX_VALUE_LENGTH. */
export function splitIntoChunks(value: string): string[] {
  const count = Math.ceil((value.length + 1) / CHUNK_LENGTH)
  const counted = `${count}${value}`
  return Array.from({ length: count }, (_, index) => counted.slice(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH))
}

/**
 * Joins the chunks in a `Cookie` header. Returns undefined if a chunk is missing, or if the first chunk does not begin with a
 * valid number.
 */
export function joinChunks(cookieHeader: string, names: readonly string[]): string | undefined {
  const first = readCookie(cookieHeader, names[0] as string)
  if (!first) return undefined
  const count = first.charCodeAt(0) - 48
  if (count === 1) return first.slice(1)
  if (!(count >= 2 && count <= names.length)) return undefined
  const chunks = names.slice(0, count).map(name => readCookie(cookieHeader, name))
  return chunks.includes(undefined) ? undefined : chunks.join('').slice(1)
}

/**
 * Returns the value of the first cookie called `name` in a `Cookie` header (RFC 6265 section 4.2), or undefined. Every request
 * needs this function. It searches for the name instead of parsing the whole header, because a search is faster.
 */
export function readCookie(header: string, name: string): string | undefined {
  let from = 0
  for (;;) {
    const at = header.indexOf(name, from)
    if (at === -1) return undefined
    const end = at + name.length
    if (header[end] === '=' && startsPair(header, at)) {
      const semicolon = header.indexOf(';', end)
      return header.slice(end + 1, semicolon === -1 ? undefined : semicolon).trimEnd()
    }
    from = end
  }
}

function startsPair(header: string, at: number): boolean {
  let before = at - 1
  while (header[before] === ' ' || header[before] === '\t') before--
  return before < 0 || header[before] === ';'
}
