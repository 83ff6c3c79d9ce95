/** A problem that the operator should fix, or a warning. `message` never contains the value of a secret. */
export interface Problem {
  /** The setting, variable or flag that has the problem. */
  readonly key: string
  /** The source of the value: `flag --port`, `variable PORT`, `file x.yaml`, `default`, or `not given`. */
  readonly origin: string
  readonly message: string
}

/** The origin of a required setting without a value. */
export const notGiven = 'not given'

/**
 * The settings cannot be used. The error lists every problem, so that the operator can fix all of them before the next
 * start.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]
  /**
   * The warnings, because one of them may explain a problem. For example, a misspelt variable causes only a warning, but the
   * required setting that it should set is then missing.
   */
  readonly warnings: readonly Problem[]

  constructor(problems: readonly Problem[], warnings: readonly Problem[] = []) {
    super([...section('The settings cannot be used:', problems), ...section('Also noticed:', warnings)].join('\n'))
    this.problems = problems
    this.warnings = warnings
  }
}

function section(title: string, problems: readonly Problem[]): string[] {
  return problems.length === 0 ? [] : [title, ...problems.map(problem => `  ${describeProblem(problem)}`)]
}

/** Formats a problem as one line. */
export function describeProblem({ key, origin, message }: Problem): string {
  return `${key} (${origin}): ${message}`
}

/**
 * Quotes a text for a message. It shortens the text and replaces characters that a terminal would interpret. It keeps
 * only the first line, because an unclosed quotation mark can make a value include the following lines and their
 * secrets.
 */
export function quote(text: string): string {
  const firstLine = text
    .split(/[\r\n]/, 1)
    .join('')
    .slice(0, 120)
  const shown = firstLine === text ? text : `${firstLine}…`
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')
}
