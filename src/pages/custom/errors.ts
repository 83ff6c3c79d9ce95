/** The files of an operator cannot be used. Each problem is a sentence about one file, without a full stop. */
export class PageFilesError extends Error {
  override readonly name = 'PageFilesError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** Creates the error for one file. Each problem continues the sentence "the file … ". */
export function fileError(path: string, ...problems: readonly string[]): PageFilesError {
  return new PageFilesError(problems.map(problem => `the file ${path} ${problem}`))
}
