/** The command line itself is wrong; the message is all a person needs to mend it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
