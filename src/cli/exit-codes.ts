export const exitCodes = {
  fine: 0,
  /** The command failed, for example because a port is in use or a check failed. */
  failed: 1,
  /** The settings or the command line are invalid. */
  misused: 2
} as const
