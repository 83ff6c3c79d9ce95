// The output of a scenario, and the counts of its checks.

/** What a scenario contributes to the table at the end. */
export interface Row {
  readonly failure: string
  readonly logins: number
  readonly lost: number
  /** Refresh tokens that were in flight in a killed process. */
  readonly inFlight?: number
  /** How often the cookie of a logged-out session was let in. */
  readonly letIn?: number
  readonly remark?: string
}

export interface Report {
  title(text: string): void
  /** Prints one line of figures, each with its name. */
  figures(values: Readonly<Record<string, string | number>>): void
  check(what: string, holds: boolean, detail?: string): void
  /** A line that helps to find out why a check failed. */
  note(text: string): void
  row(row: Row): void
  readonly rows: readonly Row[]
  readonly passed: number
  readonly failed: number
}

export function createReport(write: (text: string) => void): Report {
  const counts = { passed: 0, failed: 0 }
  const rows: Row[] = []
  return {
    title(text) {
      write(`\n== ${text}\n`)
    },
    figures(values) {
      write(
        `   ${Object.entries(values)
          .map(([name, value]) => `${name} ${value}`)
          .join(' · ')}\n`
      )
    },
    check(what, holds, detail = '') {
      counts[holds ? 'passed' : 'failed']++
      write(`   ${holds ? '✔' : '✘'} ${what}${!holds && detail ? `: ${detail}` : ''}\n`)
    },
    note(text) {
      write(`       ${text}\n`)
    },
    row(row) {
      rows.push(row)
    },
    rows,
    get passed() {
      return counts.passed
    },
    get failed() {
      return counts.failed
    }
  }
}

/** The rows as a table in Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ failure, logins, lost, inFlight = 0, letIn, remark = '' }) =>
    [failure, logins, lost, inFlight, letIn ?? '', remark].join(' | ')
  )
  const head = [
    'failure | logins | lost | in flight in a killed process | log-outs let in | remark',
    '--- | --- | --- | --- | --- | ---'
  ]
  return [...head, ...lines].map(line => `| ${line} |\n`).join('')
}
