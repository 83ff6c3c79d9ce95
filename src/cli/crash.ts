import type { Logger } from 'pino'
import { exitCodes } from './exit-codes.js'
import type { Terminal } from './terminal.js'

/**
 * Logs an uncaught error and ends the process, because the state of the process can no longer be trusted. Exit code 1 tells
 * a supervisor to start a new process. Returns a function that removes the listener.
 */
export function endOnUncaughtErrors(
  { onUncaught, exit }: Pick<Terminal, 'onUncaught' | 'exit'>,
  log: Pick<Logger, 'fatal'>
): () => void {
  return onUncaught(thrown => {
    try {
      const err = thrown instanceof Error ? thrown : new Error(String(thrown))
      log.fatal({ event: 'crashed', err }, 'the process ends after an uncaught error')
    } finally {
      exit(exitCodes.failed)
    }
  })
}
