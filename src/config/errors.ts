/** Something the operator should mend, or at least know of. `message` never holds the value of a secret. */
export interface Problem {
  /** The setting, variable or flag meant. */
  readonly key: string
  /** The source of the value: `flag --port`, `variable PORT`, `file x.yaml`, `default`, or `not given`. */
  readonly origin: string
  readonly message: string
}

/** The origin of a required setting that nobody gave. */
export const notGiven = 'not given'

/** The settings cannot be used. Carries every problem at once, so that nobody mends them one start at a time. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]
  /** A misspelt variable is only a warning, but often the reason why something required is missing. */
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

/** One problem on one line. */
export function describeProblem({ key, origin, message }: Problem): string {
  return `${key} (${origin}): ${message}`
}
