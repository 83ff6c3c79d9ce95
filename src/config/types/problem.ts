/** A problem that the operator should fix, or a warning. The message never contains the value of a secret. */
export interface ConfigProblem {
  /** The setting, variable or flag that has the problem. */
  readonly key: string
  /** The source of the value: `flag --port`, `variable PORT`, `file x.yaml`, `default`, or `not given`. */
  readonly source: string
  /** Complete sentences. The key is the subject of the first sentence, as in `is empty. Set it to true or false.` */
  readonly message: string
}

/** The source of a required setting without a value. */
export const notGiven = 'not given'

/**
 * The settings cannot be used. The error lists every problem, so that the operator can fix all of them before the next
 * start.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]
  /**
   * The error also contains the warnings, because one of them may explain a problem. For example, if the variable of a
   * required setting is misspelt, the missing setting is a problem, and the unknown variable is only a warning.
   */
  readonly warnings: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[], warnings: readonly ConfigProblem[] = []) {
    const rejected = problemSection('The settings cannot be used:', problems)
    super([...rejected, ...problemSection('Also noticed:', warnings)].join('\n'))
    this.problems = problems
    this.warnings = warnings
  }
}

function problemSection(title: string, problems: readonly ConfigProblem[]): string[] {
  return problems.length === 0 ? [] : [title, ...problems.map(problem => `  ${describeProblem(problem)}`)]
}

/** Formats a problem as one line. If a setting is not given, its line names no source. */
export function describeProblem({ key, source, message }: ConfigProblem): string {
  return source === notGiven ? `${key} ${message}` : `${key} (${source}) ${message}`
}

/**
 * Quotes a string for a message. Shortens the string and replaces characters that a terminal would interpret. Keeps only the
 * first line. If a closing quotation mark is missing in the file, the string also contains the lines after it, with their
 * secrets.
 */
export function quote(string: string): string {
  const [firstLine = ''] = /^[^\r\n]{0,120}/.exec(string) ?? []
  const shown = firstLine === string ? string : `${firstLine}…`
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')
}
