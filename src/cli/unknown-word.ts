import { nearest } from '../support/nearest.js'
import { UsageError } from './errors.js'

/** Returns the error for an unknown word. It suggests the known word with the nearest spelling. */
export function unknownWord(kind: 'command' | 'flag', word: string, known: readonly string[]): UsageError {
  // The part after an equals sign may be a secret, so the message does not contain it.
  const [name = ''] = word.split('=', 1)
  const guess = nearest(name, known)
  const help = kind === 'flag' ? '--help all' : '--help'
  return new UsageError(
    `There is no ${kind} ${name}. ${guess ? `Did you mean ${guess}?` : `${help} lists all of them.`}`
  )
}
