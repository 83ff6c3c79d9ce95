const NOBODY = 65534

/**
 * Runs the work as a user to whom file permissions apply, because they do not apply to root. That user may be unable to enter
 * the folder of this repository, so the work must not import a module for the first time.
 */
export async function unprivileged<Result>(work: () => Promise<Result>): Promise<Result> {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}
