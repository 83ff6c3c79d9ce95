/** The process's log: one JSON line an event, or the same made readable for a person at a terminal. */
import { Writable } from 'node:stream'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config/settings.js'
import { OAuthError, UpstreamError } from './idp/errors.js'
import { SessionTooLargeError } from './session/session-cookie.js'

/** @param output where the lines go; the standard output unless given. */
export async function createLog({ level, pretty }: Config['log'], output?: DestinationStream): Promise<Logger> {
  const isPretty = pretty ?? (output === undefined && process.stdout.isTTY === true)
  const options = logOptions(level)
  const lines = output ?? standardOutput()
  if (!isPretty) return pino(options, lines)
  const { default: prettyStream } = await import('pino-pretty')
  const forPeople = prettyStream({ destination: writableOf(lines) })
  return pino(options, { write: line => void forPeople.write(shortRequest(line)) })
}

/** Shortens the event of a request to one line for people. Other events keep their fields. */
function shortRequest(line: string): string {
  const entry = JSON.parse(line) as Record<string, unknown>
  if (entry.event !== 'request') return line
  const { level, time, method, path, status = 'no answer', duration_ms, aborted } = entry
  const msg = `${method} ${path} ${status} in ${duration_ms} ms${aborted ? ', given up by the client' : ''}`
  return `${JSON.stringify({ level, time, msg })}\n`
}

// sonic-boom pauses the process for a tenth of a second before each.
const MOST_TRIES = 10

/**
 * The standard output, or whatever else `fd` is. Lines that it refuses, its disk being full or its terminal closed, are
 * lost: neither a login nor the end of the process may hang on them. A reader that lags behind is waited for, but not for
 * more than a second, and not again before it reads on.
 */
export function standardOutput(fd = 1): DestinationStream {
  let isTorn = false
  let tries = 0
  function open() {
    const opened = pino.destination({ fd, sync: true, retryEAGAIN: () => ++tries <= MOST_TRIES })
    opened.on('write', written => {
      if (written > 0) tries = 0
    })
    // It would keep the failed line, to write it before any other, and for ever when told to flush: so a new one.
    opened.once('error', () => {
      isTorn = true
      stream = open()
    })
    return opened
  }
  let stream = open()
  return {
    write(line) {
      // Half of the failed line may be there, and would spoil the next one.
      const start = isTorn ? '\n' : ''
      isTorn = false
      stream.write(start + line)
    }
  }
}

function writableOf(lines: DestinationStream): Writable {
  return new Writable({
    write(line, _encoding, done) {
      lines.write(String(line))
      done()
    }
  })
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
  // What else hangs on an error may be what it came of: an HTTP client's holds the headers, and in them the token.
  const { type, message, code, stack } = pino.stdSerializers.err(error)
  return { type, message, code, ...(error instanceof SessionTooLargeError && { sizes: error.sizes }), stack }
}
