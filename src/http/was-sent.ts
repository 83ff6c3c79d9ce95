import type { ReadStream } from 'node:fs'
import type { Context } from 'koa'

/**
 * Whether all of the answer went out, as far as can be told. Of a file Node says so a moment late: by then a client that
 * counted the bytes may have hung up. So a file that was read to its end counts as sent.
 */
export function wasSent({ res, body, length }: Context): boolean {
  const { bytesRead } = (body ?? {}) as Partial<ReadStream>
  return res.writableFinished || (bytesRead !== undefined && bytesRead === length)
}
