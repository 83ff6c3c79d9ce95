export const exitCodes = {
  fine: 0,
  /** It went wrong while running: a port is taken, a check failed. */
  failed: 1,
  /** The settings or the command line are wrong. */
  misused: 2
} as const
