/** The process's log: one JSON line an event, or the same made readable for a person at a terminal. */
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config/settings.js'
import { OAuthError, UpstreamError } from './idp/errors.js'

/** @param output where the lines go; the standard output unless given. */
export async function createLog({ level, pretty }: Config['log'], output?: DestinationStream): Promise<Logger> {
  const isPretty = pretty ?? (output === undefined && process.stdout.isTTY === true)
  const options = logOptions(level)
  if (!isPretty) return output ? pino(options, output) : pino(options)
  const { default: prettyStream } = await import('pino-pretty')
  return pino(options, prettyStream({ ...(output && { destination: output }), sync: true }))
}

/** What every line of ours has in common: time in UTC, and errors without what nobody needs to see. */
export function logOptions(level: Config['log']['level']): LoggerOptions {
  return { level, timestamp: pino.stdTimeFunctions.isoTime, base: null, serializers: { err: errorFields } }
}

// Where a provider's failure came from is in its fields; only what nobody foresaw needs the stack.
function errorFields(error: Error): object {
  if (error instanceof UpstreamError || error instanceof OAuthError) {
    const { name, message, endpoint, status } = error
    const own =
      error instanceof OAuthError ? { error: error.error } : { problem: error.problem, duration_ms: error.durationMs }
    return { type: name, message, endpoint, status, ...own }
  }
  return pino.stdSerializers.err(error)
}
