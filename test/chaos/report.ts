// What a run prints, and what it found wrong.

export interface Report {
  title(text: string): void
  /** One line of figures: name and value, name and value. */
  figures(values: Readonly<Record<string, string | number>>): void
  check(what: string, holds: boolean, detail?: string): void
  /** A line for whoever has to find out why a check failed. */
  note(text: string): void
  readonly passed: number
  readonly failed: number
}

export function createReport(write: (text: string) => void): Report {
  const counts = { passed: 0, failed: 0 }
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
    get passed() {
      return counts.passed
    },
    get failed() {
      return counts.failed
    }
  }
}
