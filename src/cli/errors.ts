import { nearest } from '../support/nearest.js'

// Expected errors of the command line, which are reported in one sentence. Any other error is a bug of this program.

/** The command line is invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command line is valid, but the command failed, for example because a port is in use. */
export class RunError extends Error {
  override readonly name = 'RunError'
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export const exitCodes = {
  fine: 0,
  /** The command failed, for example because a port is in use or a check failed. */
  failed: 1,
  /** The settings or the command line are invalid. */
  misused: 2
} as const

/** Returns the error for an unknown word. It suggests the known word with the nearest spelling. */
export function unknownWord(kind: 'command' | 'action' | 'flag', word: string, known: readonly string[]): UsageError {
  // The part after an equals sign may be a secret, so the message does not contain it.
  const [name = ''] = word.split('=', 1)
  const guess = nearest(name, known)
  const help = kind === 'flag' ? '--help all' : '--help'
  return new UsageError(
    `There is no ${kind} ${name}. ${guess ? `Did you mean ${guess}?` : `${help} lists all of them.`}`
  )
}
