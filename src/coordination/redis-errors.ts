import { TimeLimitError } from '../support/within.js'

/** Redis cannot be used now. It is unreachable, slow, full or read-only, or it may have just lost data. */
export class RedisUnavailableError extends Error {}

/** The value of one key cannot be read. It has the wrong type or cannot be decrypted. Other keys are not affected. */
export class StoredDataError extends Error {}

/** Redis is full, and its `maxmemory-policy` makes it delete keys instead of refusing to write. */
export class EvictingError extends Error {
  readonly code = 'evicting'
}

/** Returns true if the connection failed. Returns false for an error reply, an exceeded time limit and a full Redis. */
export function isConnectionError(error: unknown): boolean {
  return !(error instanceof TimeLimitError || error instanceof EvictingError || isReply(error))
}

export function isWrongType(error: unknown): boolean {
  return isReply(error) && (error as Error).message.includes('WRONGTYPE')
}

/**
 * Returns the reason for the log, such as `timeout`, a Node error code (ECONNREFUSED), or the code of an error reply
 * (READONLY, OOM). The full text of an error reply is not logged, because the text may quote a command that contains a
 * password.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof TimeLimitError) return 'timeout'
  const { message = '', code, lastNodeError } = error as Partial<Error> & { code?: unknown; lastNodeError?: unknown }
  // ioredis could not use any node of the cluster. `lastNodeError` is the error of the last node that it tried.
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError)
  if (isReply(error)) return replyCode(message)
  return typeof code === 'string' ? code : 'connection lost'
}

function isReply(error: unknown): boolean {
  return (error as Error).name === 'ReplyError'
}

// If a command inside a script fails, Redis before version 7 puts text before the code, as in "ERR Error running script
// … -OOM …".
function replyCode(message: string): string {
  const nested = /^ERR .*?-(OOM|READONLY|MISCONF|NOREPLICAS)\b/.exec(message)?.[1]
  return nested ?? /^[A-Z]+/.exec(message)?.[0] ?? 'refused'
}
