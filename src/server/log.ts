/** Creates the log of the process. Each event is one line of JSON, or a readable line for a terminal. */
import { type DestinationStream, pino } from 'pino'
import { type Colours, coloursFor } from '../base/colours.js'
import { reasonOf } from '../base/failure-reasons.js'
import { withSourcePositions } from '../base/source-positions.js'
import type { Config } from '../config/settings.js'
import { SessionTooLargeError } from '../cookie/session-cookie.js'
import { OAuthError, ProviderError } from '../provider/provider-error.js'

/**
 * Creates the log of the process.
 * @param output destination of the lines, standard output by default
 * @param colours colours of the readable lines, by default those of standard output
 */
export function createLog(
  { level, format }: Pick<Config['log'], 'level' | 'format'>,
  output?: DestinationStream,
  colours = coloursFor(process)
) {
  const isTerminal = output === undefined && process.stdout.isTTY === true
  const isText = format === 'text' || (format === 'auto' && isTerminal)
  const destination = output ?? standardOutput()
  const lines = { write: (line: string) => destination.write(shortLine(line)) }
  const readable = { write: (line: string) => lines.write(readableLine(line, colours)) }
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      base: null,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: errorFields }
    },
    isText ? readable : lines
  )
}

// The package sonic-boom, which writes the lines, blocks the process for a tenth of a second before each retry, so the
// number of retries is limited.
const MAX_RETRIES = 10

/**
 * Writes lines to standard output, or to another file descriptor. A line is lost if it cannot be written, for example
 * because the disk is full or the terminal is closed. Neither a login nor shutdown may wait for such a line. If the
 * reader is slow, a write blocks the process for up to one second. After that, no write blocks until the reader has
 * accepted data.
 */
export function standardOutput(fd = 1): DestinationStream {
  let mayHavePartialLine = false
  let retries = 0
  function open() {
    const opened = pino.destination({ fd, sync: true, retryEAGAIN: () => ++retries <= MAX_RETRIES })
    opened.on('write', written => {
      if (written > 0) retries = 0
    })
    // After an error, the stream would keep the line that it could not write, and would try to write this line again
    // before each new line. A flush of the stream would never end. So a new stream replaces it.
    opened.once('error', () => {
      mayHavePartialLine = true
      stream = open()
    })
    return opened
  }
  let stream = open()
  return {
    write(line) {
      // Part of the failed line may have been written, so a line break separates it from the next line.
      const start = mayHavePartialLine ? '\n' : ''
      mayHavePartialLine = false
      stream.write(start + line)
    }
  }
}

// A request can contain 32 kB of path or header. Docker splits a line above 16 KiB, and its parts are no JSON.
const MAX_FIELD_CHARACTERS = 2048
const MAX_LINE_BYTES = 8192

/** Shortens the long strings of a line, and if the line is still too long, all strings more and more until it fits. */
function shortLine(line: string): string {
  if (line.length <= MAX_FIELD_CHARACTERS) return line
  const entry = JSON.parse(line) as LogEntry
  for (let max = MAX_FIELD_CHARACTERS; max >= 8; max /= 2) {
    const short = JSON.stringify(entry, function cut(this: unknown, _name, value: unknown) {
      // A stack may be longer than a field that comes from a request.
      const isShort =
        typeof value !== 'string' || value.length <= max || (this !== entry && max === MAX_FIELD_CHARACTERS)
      return isShort ? value : `${value.slice(0, max)}… (cut, ${value.length} characters)`
    })
    if (Buffer.byteLength(short) < MAX_LINE_BYTES) return `${short}\n`
  }
  const { level, time, event } = entry
  return `${JSON.stringify({ level, time, event, msg: 'this line was too long' })}\n`
}

// The endpoint and the status show where the provider failed. Only unexpected errors need a stack. The names of this server's
// classes are not logged, so that a search for a type works after a refactoring, too.
function errorFields(error: Error): object {
  if (error instanceof ProviderError) {
    const { reason, message, endpoint, status } = error
    const cause = error instanceof OAuthError ? { error_code: error.error } : { duration_ms: error.durationMs }
    return { type: reason, message, endpoint, status, ...cause }
  }
  // Other properties of an error are left out, because they may contain the request and the token in its headers.
  const { type, message, code, status, stack } = pino.stdSerializers.err(error)
  const reason = reasonOf(error)
  if (reason !== undefined) {
    return { type: reason, message, code, ...(error instanceof SessionTooLargeError && { sizes: error.sizes }) }
  }
  // The error of an HTTP client has the status of the response that the client got.
  const clientStatus = typeof status === 'number' ? { status } : undefined
  return {
    type,
    message,
    code,
    ...clientStatus,
    stack: stack && withSourcePositions(stack)
  }
}

type LogEntry = Readonly<Record<string, unknown>>

/**
 * Converts a log event to a readable line: the time in UTC, the level, the message and the fields. If the event has an
 * error, a second line describes the error.
 * @param line the event as one line of JSON
 */
function readableLine(line: string, colours: Colours): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as LogEntry
  const clock = colours.dim(String(time).slice(11, -1))
  const isRequest = fields.event === 'request'
  const text = isRequest ? requestText(fields) : printable(String(msg ?? ''))
  const more = isRequest ? '' : fieldsText(fields)
  const first = [clock, levelText(String(level), colours), text, more && colours.dim(more)].filter(Boolean).join(' ')
  const second = err === undefined ? '' : errorText(err as LogEntry)
  return second === '' ? `${first}\n` : `${first}\n    ${second}\n`
}

function levelText(level: string, { red, yellow, green, dim }: Colours): string {
  const colourOf: Readonly<Record<string, (text: string) => string>> = {
    fatal: red,
    error: red,
    warn: yellow,
    info: green
  }
  return (colourOf[level] ?? dim)(level.toUpperCase().padEnd(5))
}

function requestText({ method, path, status = 'no response', duration_ms, aborted }: LogEntry): string {
  return printable(`${method} ${path} ${status} in ${duration_ms} ms${aborted ? ', aborted by the client' : ''}`)
}

function errorText({ type, message, stack, ...fields }: LogEntry): string {
  const known = [type, message].filter(part => part !== undefined).join(': ')
  const description = typeof stack === 'string' ? usefulFrames(stack) : known
  return [printable(description), fieldsText(fields)].filter(Boolean).join(' ')
}

/** Removes the frames of Node and of packages from a stack, unless there are no others. */
function usefulFrames(stack: string): string {
  const useful = stack.replace(/^ +at (async )?(.*\()?(node:|.*\/node_modules\/).*\n?/gm, '').trimEnd()
  return /^ +at /m.test(useful) ? useful : stack
}

function fieldsText(fields: LogEntry): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join(' ')
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/@+-]+$/.test(value) ? value : printable(JSON.stringify(value))
}

// Some strings come from clients. Characters that a terminal interprets are replaced: the control characters, and the
// characters that change the writing direction.
export function printable(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' | ').replace(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, '?')
}
