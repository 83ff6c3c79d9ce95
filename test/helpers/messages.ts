import type { ExecutionContext } from 'ava'

/**
 * Asserts that a message contains each of these words, which are separated by spaces: settings, values, codes and the words that
 * distinguish it from other messages. The rest of the message can be reworded without breaking a test.
 */
export function carries(t: ExecutionContext, message: string | undefined, words: string): void {
  const missing = words.split(' ').filter(word => !hasWord(message ?? '', word))
  t.deepEqual(missing, [], `lacks these words: ${message}`)
}

/** A word that begins or ends with a letter or a digit must be a whole word: `300` is not in `3000`. Its case does not matter. */
function hasWord(message: string, word: string): boolean {
  const escaped = word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const start = /^[a-z\d]/i.test(word) ? '(?<![a-z\\d])' : ''
  const end = /[a-z\d]$/i.test(word) ? '(?![a-z\\d])' : ''
  return new RegExp(start + escaped + end, 'i').test(message)
}
