import type { Colours } from './colours.js'

type Entry = Readonly<Record<string, unknown>>

/**
 * Turns an event of the log into one line for people: the time in UTC, the level, the message and the fields. If the event
 * has an error, a second line describes the error.
 * @param line the event as one line of JSON
 */
export function readableLine(line: string, colours: Colours): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Entry
  const clock = colours.dim(String(time).slice(11, -1))
  const isRequest = fields.event === 'request'
  const text = isRequest ? requestText(fields) : printable(String(msg ?? ''))
  const more = isRequest ? '' : fieldsText(fields)
  const first = [clock, levelText(Number(level), colours), text, more && colours.dim(more)].filter(Boolean).join(' ')
  const second = err === undefined ? '' : errorText(err as Entry)
  return second === '' ? `${first}\n` : `${first}\n    ${second}\n`
}

function levelText(level: number, { bold, red, yellow, green, dim }: Colours): string {
  if (level >= 60) return bold(red('FATAL'))
  if (level >= 50) return red('ERROR')
  if (level >= 40) return yellow('WARN ')
  return level >= 30 ? green('INFO ') : dim(level >= 20 ? 'DEBUG' : 'TRACE')
}

function requestText({ method, path, status = 'no answer', duration_ms, aborted }: Entry): string {
  return printable(`${method} ${path} ${status} in ${duration_ms} ms${aborted ? ', aborted by the client' : ''}`)
}

function errorText({ type, message, stack, ...fields }: Entry): string {
  const known = [type, message].filter(part => part !== undefined).join(': ')
  const description = typeof stack === 'string' ? usefulFrames(stack) : known
  return [printable(description), fieldsText(fields)].filter(Boolean).join(' ')
}

/** Removes the frames of Node and of packages from a stack, unless there are no others. */
function usefulFrames(stack: string): string {
  const useful = stack.replace(/^ +at (async )?(.*\()?(node:|.*\/node_modules\/).*\n?/gm, '').trimEnd()
  return /^ +at /m.test(useful) ? useful : stack
}

function fieldsText(fields: Entry): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join(' ')
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/@+-]+$/.test(value) ? value : printable(JSON.stringify(value))
}

// Some texts come from clients. Characters that a terminal interprets are replaced: the control characters, and the
// characters that change the direction of the text.
function printable(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' | ').replace(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, '?')
}
