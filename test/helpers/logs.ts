import type { Logger } from 'pino'
import type { Config } from '#src/config/settings.js'
import { createLog } from '#src/log.js'

export type LogEntry = Readonly<Record<string, unknown>>

export interface CollectedLogs {
  readonly log: Logger
  /** Each line as the logger wrote it. */
  readonly lines: readonly string[]
  readonly entries: readonly LogEntry[]
  find(matches: (entry: LogEntry) => boolean): LogEntry | undefined
  /** The first line with this event. */
  first(event: string): LogEntry | undefined
  /** All lines with this event. */
  all(event: string): readonly LogEntry[]
}

/**
 * Creates the server's own logger and collects its lines, by default at level trace, so that tests can read them and
 * search them for secrets.
 */
export async function collectLogs(level: Config['log']['level'] = 'trace'): Promise<CollectedLogs> {
  const lines: string[] = []
  const entries: LogEntry[] = []
  const write = (line: string) => {
    lines.push(line)
    entries.push(JSON.parse(line) as LogEntry)
  }
  const log = createLog({ level, pretty: false, requests: true }, { write })
  return {
    log,
    lines,
    entries,
    find: matches => entries.find(matches),
    first: event => entries.find(entry => entry.event === event),
    all: event => entries.filter(entry => entry.event === event)
  }
}
