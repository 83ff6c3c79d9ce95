// Counts of the responses that all simulated users of a scenario received.
import type { User } from './user.js'
import type { Verdict } from './verdict.js'

export type Tally = ReturnType<typeof createTally>

export function createTally() {
  return {
    sessions: 0,
    failedLogins: 0,
    logouts: 0,
    requests: 0,
    /** Requests without a response, because the tab was closed or the connection broke. */
    unanswered: 0,
    statuses: new Map<number, number>(),
    /** The users who got a 503. */
    refused: new Set<User>(),
    /** Logins that ended although the user had not logged out. */
    gone: [] as Verdict[],
    /** Descriptions of responses that must never occur. */
    faults: [] as string[]
  }
}

/** Formats counts as `3 × a, 1 × b`, with the most frequent value first. */
export function countEach(values: Iterable<string>): string {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  return sorted.map(([value, count]) => `${count} × ${value}`).join(', ') || 'none'
}
