import type { Logger } from 'pino'
import { exitCodes } from './exit-codes.js'
import type { Terminal } from './terminal.js'

/**
 * An error that nobody caught leaves nobody sure of anything, so the process ends and whoever supervises it starts
 * another: one line that says why, in the log where all else is, and exit code 1. Returns what ends the listening.
 */
export function endOnUncaughtErrors(
  { onUncaught, exit }: Pick<Terminal, 'onUncaught' | 'exit'>,
  log: Pick<Logger, 'fatal'>
): () => void {
  return onUncaught(thrown => {
    try {
      const err = thrown instanceof Error ? thrown : new Error(String(thrown))
      log.fatal({ event: 'crashed', err }, 'an error that nobody caught')
    } finally {
      exit(exitCodes.failed)
    }
  })
}
