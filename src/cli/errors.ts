// What can go wrong on the command line and be said in one sentence. Anything else that is thrown is a fault of ours.

/** The command line itself is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command is right, but cannot be carried out here and now. */
export class RunError extends Error {
  override readonly name = 'RunError'
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
