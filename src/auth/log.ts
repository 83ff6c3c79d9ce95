import type { Logger } from 'pino'

/**
 * The logger methods that this folder uses. The logger does not remove secrets, so callers must never pass a secret to
 * it.
 */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
