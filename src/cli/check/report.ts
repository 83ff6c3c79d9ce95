import { coloursFor } from '../../support/colours.js'
import type { Terminal } from '../terminal.js'
import { columnsOf, wrap } from '../terminal.js'

export type Status = 'ok' | 'warning' | 'failed'

/** One result of a check. */
export interface Finding {
  /** The name of the check. Scripts may rely on it. */
  readonly check: string
  readonly status: Status
  /** Whole sentences, without a secret and without the provider's own text. */
  readonly message: string
  /** Advice on what to do. */
  readonly next?: string
}

/** The finding of `check` that a setting or an endpoint is right. */
export function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message }
}

/** A finding that the server can run with, but that the operator should know. */
export function warning(check: string, message: string, next: string): Finding {
  return { check, status: 'warning', message, next }
}

/** A finding that keeps the server from working. It makes the exit code 1. */
export function failed(check: string, message: string, next: string): Finding {
  return { check, status: 'failed', message, next }
}

const statusWidth = 'warning'.length + 2
const checkWidth = 'endpoints'.length + 2

/** Writes each finding at once, and a summary at the end. With `isJson`, writes only one JSON object at the end. */
export function createReport(terminal: Pick<Terminal, 'stdout' | 'env'>, isJson: boolean) {
  const { stdout } = terminal
  const findings: Finding[] = []
  const { green, yellow, red, bold } = coloursFor(terminal)
  const colourOf: Readonly<Record<Status, (text: string) => string>> = { ok: green, warning: yellow, failed: red }
  const count = (wanted: Status) => findings.filter(({ status }) => status === wanted).length
  const hasFailed = () => count('failed') > 0

  function textOf({ check, status, message, next }: Finding): string {
    const text = `${message}${next === undefined ? '' : ` Next: ${next}`}`
    const indent = statusWidth + checkWidth
    return `${colourOf[status](status.padEnd(statusWidth))}${check.padEnd(checkWidth)}${wrap(text, columnsOf(stdout), indent)}`
  }

  function summary(): string {
    const counts = `${count('ok')} ok, ${plural(count('warning'), 'warning')}, ${count('failed')} failed.`
    const [colour, advice] = hasFailed()
      ? [red, 'Fix the failed findings, then run check again.']
      : count('warning') > 0
        ? [yellow, 'The server can run, but read the warnings first.']
        : [green, 'The server can run with these settings.']
    return wrap(`${counts} ${advice}`, columnsOf(stdout)).replace(counts, bold(colour(counts)))
  }

  return {
    hasFailed,
    add(finding: Finding) {
      findings.push(finding)
      if (!isJson) stdout.write(`${textOf(finding)}\n`)
    },
    end() {
      if (isJson) stdout.write(`${JSON.stringify({ ok: !hasFailed(), findings }, undefined, 2)}\n`)
      else stdout.write(`\n${summary()}\n`)
    }
  }
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
