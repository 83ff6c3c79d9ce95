import type { Output } from '../terminal.js'
import type { Finding } from './finding.js'

export interface Report {
  add(finding: Finding): void
  end(): void
  hasFailed(): boolean
}

/** One line a finding as they come in, or one JSON object at the end. */
export function createReport(output: Output, isJson: boolean): Report {
  const findings: Finding[] = []
  const hasFailed = () => findings.some(({ status }) => status === 'failed')
  return {
    hasFailed,
    add(finding) {
      findings.push(finding)
      if (!isJson) output.write(`${lineOf(finding)}\n`)
    },
    end() {
      if (isJson) output.write(`${JSON.stringify({ ok: !hasFailed(), findings }, undefined, 2)}\n`)
    }
  }
}

function lineOf({ check, status, message, next }: Finding): string {
  return `${status.padEnd(7)}  ${check.padEnd(9)}  ${message}${next === undefined ? '' : ` Next: ${next}`}`
}
