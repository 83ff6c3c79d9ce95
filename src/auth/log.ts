import type { Logger } from 'pino'

/** What these parts need of a logger. Nothing secret goes in: what a line may hold is decided where it is written. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
