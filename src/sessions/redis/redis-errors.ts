/** What an error of the connection to Redis means. */

import { TimeLimitError } from '../../base/clock.js'
import { isError } from '../../base/error-code.js'

/** Returns true if the reply shows that this node is unusable for a while, for example during a failover. */
export function isNodeUnusable(error: unknown): boolean {
  return isReply(error) && /^(LOADING|MASTERDOWN|CLUSTERDOWN)\b/.test(replyCode((error as Error).message))
}

/** Returns true if Redis refused to select the database of `redis.url`. */
export function isRefusedDatabase(error: unknown): boolean {
  const { command } = (error ?? {}) as { readonly command?: { readonly name?: unknown } }
  return command?.name === 'select' && isReply(error)
}

export function isWrongType(error: unknown): boolean {
  return isReply(error) && (error as Error).message.includes('WRONGTYPE')
}

/**
 * Returns the reason for the log, such as `timeout`, a Node error code (ECONNREFUSED), or the code of an error reply
 * (READONLY, OOM). The message of an error reply is not logged, because it may quote a command that contains a
 * password.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof TimeLimitError) return 'timeout'
  const { message = '', code, lastNodeError } = error as Partial<Error> & { code?: unknown; lastNodeError?: unknown }
  // ioredis could not use any node of the cluster. `lastNodeError` is the error of the last node that it tried.
  if (isError(lastNodeError)) return reasonOf(lastNodeError)
  if (isReply(error)) return replyCode(message)
  return typeof code === 'string' ? code : 'connection_lost'
}

/** Returns true if Redis replied with an error. Returns false if the connection failed. */
export function isReply(error: unknown): boolean {
  return (error as Error).name === 'ReplyError'
}

// If a command inside a script fails, a Redis older than version 7 puts other words before the error code, as in "ERR Error
// running script … -OOM …".
function replyCode(message: string): string {
  // If the user may not use a command or a key of a script, Redis 7 replies with ERR instead of NOPERM.
  if (message.includes('The user executing the script')) return 'NOPERM'
  if (message.startsWith('ERR max number of clients')) return 'MAXCLIENTS'
  if (message.startsWith('ERR unknown command')) return 'UNKNOWNCOMMAND'
  const nested = /^ERR .*?-(OOM|READONLY|MISCONF|NOREPLICAS|LOADING|MASTERDOWN|CLUSTERDOWN)\b/.exec(message)?.[1]
  return nested ?? /^[A-Z]+/.exec(message)?.[0] ?? 'refused'
}
