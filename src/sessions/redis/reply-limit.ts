/**
 * Limits the length of the strings that Redis sends. Somebody who can write to Redis could otherwise end this process with one
 * field or message of 100 MB, because the client collects a whole string before anybody can look at its length.
 */

/**
 * The longest string in Redis, in bytes. The longest string that this server stores is the record of a session, which is
 * encrypted twice and needs less than half of this.
 */
export const MAX_REPLY_BYTES = 1024 * 1024

const LINE_FEED = 10

/**
 * Returns a function that takes the bytes of a connection, in order. It returns true when Redis announces a string that is longer
 * than the limit, before its content arrives.
 */
export function createReplyLimit(maxBytes = MAX_REPLY_BYTES): (chunk: Buffer) => boolean {
  /** The bytes that are left of a string, with the line end that follows it. */
  let left = 0
  /** The beginning of a line that has not ended yet. */
  let line = ''

  return function isTooLong(chunk) {
    for (let at = 0; at < chunk.length; ) {
      if (left > 0) {
        const skipped = Math.min(left, chunk.length - at)
        left -= skipped
        at += skipped
        continue
      }
      const end = chunk.indexOf(LINE_FEED, at)
      line += chunk.toString('latin1', at, end === -1 ? chunk.length : end)
      if (line.length > maxBytes) return true
      if (end === -1) return false
      at = end + 1
      // A string begins with a line such as `$12`. `$-1` is a missing value, without content.
      const length = line.startsWith('$') ? Number(line.slice(1)) : -1
      if (length > maxBytes) return true
      if (length >= 0) left = length + 2
      line = ''
    }
    return false
  }
}
