import type { ReadStream } from 'node:fs'
import type { Context } from 'koa'

/**
 * True if the whole response was sent, as far as Node can tell. Node reports the end of a file a moment late, and a
 * client that counted the bytes may have disconnected by then. So a file that was read to its end counts as sent.
 */
export function wasSent({ res, body, length }: Context): boolean {
  const { bytesRead } = (body ?? {}) as Partial<ReadStream>
  return res.writableFinished || (bytesRead !== undefined && bytesRead === length)
}
