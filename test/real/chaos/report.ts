// Prints the results of a scenario and counts its checks.

/** A row of the table that is printed after all scenarios. */
export interface Row {
  readonly failure: string
  readonly logins: number
  readonly lost: number
  /** The number of logins whose refresh token was in flight in a killed process. */
  readonly inFlight?: number
  /** How often the cookie of a logged-out session was accepted. */
  readonly letIn?: number
  readonly remark?: string
}

export interface Report {
  title(text: string): void
  /** Prints one line of named numbers. */
  figures(values: Readonly<Record<string, string | number>>): void
  check(what: string, holds: boolean, detail?: string): void
  /** Prints a line that helps to find out why a check failed. */
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

/** Formats the rows as a table in Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ failure, logins, lost, inFlight = 0, letIn, remark = '' }) =>
    [failure, logins, lost, inFlight, letIn ?? '', remark].join(' | ')
  )
  const head = [
    'failure | logins | lost | in flight in a killed process | logged-out cookies accepted | remark',
    '--- | --- | --- | --- | --- | ---'
  ]
  return [...head, ...lines].map(line => `| ${line} |\n`).join('')
}
