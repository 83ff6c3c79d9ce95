import { TimeLimitError } from '../support/clock.js'

/** Returns true if the reply shows that this node cannot be used now, for example during a failover. */
export function isNodeUnusable(error: unknown): boolean {
  return isReply(error) && /^(READONLY|LOADING|MASTERDOWN|CLUSTERDOWN)\b/.test(replyCode((error as Error).message))
}

/** Returns true if Redis refused to select the database of `redisUrl`. */
export function isRefusedDatabase(error: unknown): boolean {
  const { command } = (error ?? {}) as { readonly command?: { readonly name?: unknown } }
  return command?.name === 'select' && isReply(error)
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

/** Returns true if Redis answered with an error. Returns false if the connection failed. */
export function isReply(error: unknown): boolean {
  return (error as Error).name === 'ReplyError'
}

// If a command inside a script fails, Redis before version 7 puts text before the code, as in "ERR Error running script
// … -OOM …".
function replyCode(message: string): string {
  // Redis 7 uses the code ERR if the user may not use a command or a key of a script.
  if (message.includes('The user executing the script')) return 'NOPERM'
  const nested = /^ERR .*?-(OOM|READONLY|MISCONF|NOREPLICAS|LOADING|MASTERDOWN|CLUSTERDOWN)\b/.exec(message)?.[1]
  return nested ?? /^[A-Z]+/.exec(message)?.[0] ?? 'refused'
}
