import type { Config } from '#src/config/settings.js'
import { createLog } from '#src/server/log.js'

export type LogEntry = Readonly<Record<string, unknown>>

/** True for a warning and for an error. */
export function isWarning({ level }: LogEntry): boolean {
  return isFault({ level }) || level === 'warn'
}

/** True for an error and for the end of the process. */
export function isFault({ level }: LogEntry): boolean {
  return level === 'error' || level === 'fatal'
}

export type CollectedLogs = Awaited<ReturnType<typeof collectLogs>>

/**
 * Creates the server's own logger and collects its lines, by default at level trace, so that tests can read them and
 * search them for secrets.
 */
export async function collectLogs(level: Config['log']['level'] = 'trace') {
  const lines: string[] = []
  const entries: LogEntry[] = []
  const write = (line: string) => {
    lines.push(line)
    entries.push(JSON.parse(line) as LogEntry)
  }
  const log = createLog({ level, format: 'json' }, { write })
  return {
    log,
    /** Each line as the logger wrote it. */
    lines,
    entries,
    find: (matches: (entry: LogEntry) => boolean) => entries.find(matches),
    /** The first line with this event. */
    first: (event: string) => entries.find(entry => entry.event === event),
    /** All lines with this event. */
    all: (event: string) => entries.filter(entry => entry.event === event)
  }
}
