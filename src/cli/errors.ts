// Expected errors of the command line, which are reported in one sentence. Any other error is a bug of this program.

/** The command line is invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command line is valid, but the command failed, for example because a port is in use. */
export class RunError extends Error {
  override readonly name = 'RunError'
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
