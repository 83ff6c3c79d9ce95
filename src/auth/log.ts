import type { Logger } from 'pino'

/**
 * The logger methods that this folder uses. The caller must not log secrets, because the logger does not remove them.
 */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
