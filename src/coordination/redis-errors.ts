import { TimeLimitError } from '../support/within.js'

/** Redis cannot be used now. It is unreachable, slow, full or read-only, or it may have lost data a moment ago. */
export class RedisUnavailableError extends Error {}

/** One key holds data that this program did not write. Redis itself is fine. */
export class StoredDataError extends Error {}

/** Redis is full, and its `maxmemory-policy` makes it delete keys instead of refusing to write. */
export class EvictingError extends Error {
  readonly code = 'evicting'
}

/** True if the connection broke before a reply arrived. False for an error reply, a late reply and a full Redis. */
export function isConnectionError(error: unknown): boolean {
  return !(error instanceof TimeLimitError || error instanceof EvictingError || isReply(error))
}

export function isWrongType(error: unknown): boolean {
  return isReply(error) && (error as Error).message.includes('WRONGTYPE')
}

/**
 * Returns the reason as one word for the log: `timeout`, a Node error code (ECONNREFUSED), or the code of an error
 * reply (READONLY, OOM). The full text of a reply is not logged, because it may quote a command that contains a
 * password.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof TimeLimitError) return 'timeout'
  const { message = '', code, lastNodeError } = error as Partial<Error> & { code?: unknown; lastNodeError?: unknown }
  // ioredis found no usable node in the cluster. The error of the last node has the reason.
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError)
  if (isReply(error)) return replyCode(message)
  return typeof code === 'string' ? code : 'connection lost'
}

function isReply(error: unknown): boolean {
  return (error as Error).name === 'ReplyError'
}

// When a command inside a script fails, Redis before version 7 puts its own text in front: "ERR Error running script …
// -OOM …".
function replyCode(message: string): string {
  const nested = /^ERR .*?-(OOM|READONLY|MISCONF|NOREPLICAS)\b/.exec(message)?.[1]
  return nested ?? /^[A-Z]+/.exec(message)?.[0] ?? 'refused'
}
