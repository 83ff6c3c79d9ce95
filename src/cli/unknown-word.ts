import { nearest } from '../config/nearest.js'
import { UsageError } from './errors.js'

/** The error for a word that is none of those known, with the one that was most likely meant. */
export function unknownWord(kind: string, word: string, known: readonly string[]): UsageError {
  // What follows an equals sign may be a secret.
  const [name = ''] = word.split('=', 1)
  const guess = nearest(name, known)
  return new UsageError(`There is no ${kind} ${name}${guess ? `; did you mean ${guess}?` : '. --help lists them all.'}`)
}
