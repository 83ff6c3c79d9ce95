import type { Logger } from 'pino'

/** The logger methods that this folder uses. The logger does not remove secrets, so none may be passed to it. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
