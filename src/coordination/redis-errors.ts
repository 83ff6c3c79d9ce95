import { TimeLimitError } from '../support/within.js'

/** Redis cannot be used now: it is unreachable, slow, full, read-only, or not settled yet. */
export class RedisUnavailableError extends Error {}

/** One key holds data that this program did not write. Redis itself is fine. */
export class StoredDataError extends Error {}

/** Redis is full, and its `maxmemory-policy` makes it delete keys instead of refusing to write. */
export class EvictingError extends Error {
  readonly code = 'evicting'
}

/** A connection that broke before the answer, as opposed to an answer that is an error, or one that comes too late. */
export function isConnectionTrouble(error: unknown): boolean {
  return !(error instanceof TimeLimitError || error instanceof EvictingError || isReply(error))
}

export function isWrongType(error: unknown): boolean {
  return isReply(error) && (error as Error).message.includes('WRONGTYPE')
}

/**
 * One word for the log: `timeout`, a code of Node's (ECONNREFUSED), or the code of Redis's answer (READONLY, OOM). The rest of
 * an answer may quote the command and with it a password.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof TimeLimitError) return 'timeout'
  const { message = '', code, lastNodeError } = error as Partial<Error> & { code?: unknown; lastNodeError?: unknown }
  // A cluster without a usable node; the error of the last node says why.
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError)
  if (isReply(error)) return replyCode(message)
  return typeof code === 'string' ? code : 'connection lost'
}

function isReply(error: unknown): boolean {
  return (error as Error).name === 'ReplyError'
}

// Before version 7, Redis puts the error of a command inside a script behind a text of its own: "ERR Error running script … -OOM …".
function replyCode(message: string): string {
  const nested = /^ERR .*?-(OOM|READONLY|MISCONF|NOREPLICAS)\b/.exec(message)?.[1]
  return nested ?? /^[A-Z]+/.exec(message)?.[0] ?? 'refused'
}
